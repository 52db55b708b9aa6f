// http/server_core.h: what all listeners and connections of one server share.
//
// Owns     options, open files, the table of connections, the router. Borrows the services.
// Threads  any.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "engine/model_host.h"
#include "engine/music_service.h"
#include "http/connection_table.h"
#include "http/metrics_log.h"
#include "http/options.h"
#include "http/router.h"
#include "http/server_stats.h"
#include "http/tls.h"

namespace hocket {

// The files that the options name.
struct ServerFiles {
  static Result<ServerFiles> open(const ServerOptions& options);
  std::unique_ptr<MetricsLog> metrics_log;  // nullptr: none
  std::shared_ptr<const TlsContext> tls;    // nullptr: plain HTTP
};

class ServerCore {
 public:
  // `m` nullptr: no music.
  ServerCore(ServerOptions o, ModelHost& h, MusicService* m, bool check_host, ServerFiles files);
  ~ServerCore();

  // See Server::reload().
  Result<void> reload();
  std::shared_ptr<const TlsContext> tls() const;
  void begin_stop();

  // In this order: later members borrow earlier ones.
  const ServerOptions options;
  ModelHost& host;
  MusicService* const music;
  const std::unique_ptr<MetricsLog> metrics_log;
  ConnectionTable table;
  ServerStats stats;
  Router router;
  const int stop_fd;  // readable from begin_stop() on
  std::atomic<bool> stopping{false};

 private:
  mutable std::mutex tls_mutex_;
  std::shared_ptr<const TlsContext> tls_;
};

}  // namespace hocket
