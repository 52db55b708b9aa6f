// http/server.h: the OpenAI-compatible HTTP server over a ModelHost.
//
//   TRY_ASSIGN(auto server, Server::start(options, *host));
//   … until a signal …
//   server->stop(std::chrono::seconds(30));
//
// A thread a connection, so that streams and slow clients never keep a health or control call waiting.
//
// Owns     listening sockets, the passed ones too, and connection threads. Borrows the services, which must outlive it.
// Threads  every method from any thread.
// Errors   start(): kInvalid for an address that other machines reach without a key (param "host"), for passed sockets
//          that do not listen (param "socket") or for options that do not fit together, kIo when an address cannot be
//          bound or a certificate, key or metrics log not opened.
// Cost     an idle connection is a sleeping thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/model_host.h"
#include "engine/music_service.h"
#include "http/options.h"

namespace hocket {

class Server {
 public:
  // Listens when it returns; requests that need the model are answered 503 until the host is ready.
  // `music` nullptr: its endpoints say that there is none.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, ModelHost& host, MusicService* music = nullptr);
  virtual ~Server() = default;  // stop() without waiting for running replies

  virtual int port() const = 0;  // 0 for a unix socket
  // "http://127.0.0.1:8080", "https://…" or "unix:/path", one for each address.
  virtual std::vector<std::string> urls() const = 0;
  virtual std::size_t n_connections() const = 0;

  // Replaces the accepted API keys; an empty list is refused when there were keys before.
  virtual Result<void> set_api_keys(std::vector<std::string> keys) = 0;

  // Reads certificate and key from their files again, for connections to come, and opens the metrics log by its name
  // again. What fails stays as it was; the first failure is returned.
  virtual Result<void> reload() = 0;

  // Accepts no more connections, lets running replies end for up to `drain`, ends the rest with an error and returns
  // when the last connection is closed.
  virtual void stop(std::chrono::milliseconds drain) = 0;
};

}  // namespace hocket
