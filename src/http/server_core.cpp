#include "http/server_core.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace hocket {

Result<ServerFiles> ServerFiles::open(const ServerOptions& options) {
  ServerFiles files;
  if (!options.ssl_cert_file.empty()) {
    TRY_ASSIGN(files.tls, TlsContext::load(options.ssl_cert_file, options.ssl_key_file));
  }
  if (!options.metrics_log.empty()) {
    TRY_ASSIGN(files.metrics_log, MetricsLog::open(options.metrics_log));
  }
  return files;
}

ServerCore::ServerCore(ServerOptions o, ModelHost& h, MusicService* m, bool check_host, ServerFiles files)
    : options(std::move(o)),
      host(h),
      music(m),
      metrics_log(std::move(files.metrics_log)),
      table(options.limits),
      stats(table),
      router(Api{options, h, stats, metrics_log.get(), m}, check_host),
      stop_fd(eventfd(0, EFD_CLOEXEC)),
      tls_(std::move(files.tls)) {}

ServerCore::~ServerCore() {
  close(stop_fd);
}

Result<void> ServerCore::reload() {
  Result<void> result;
  if (metrics_log) result = metrics_log->reopen();
  if (options.ssl_cert_file.empty()) return result;
  auto tls = TlsContext::load(options.ssl_cert_file, options.ssl_key_file);
  if (!tls) return result ? Result<void>(tls.error()) : result;
  const std::lock_guard lock(tls_mutex_);
  tls_ = std::move(*tls);
  return result;
}

std::shared_ptr<const TlsContext> ServerCore::tls() const {
  const std::lock_guard lock(tls_mutex_);
  return tls_;
}

void ServerCore::begin_stop() {
  stopping = true;
  const uint64_t one = 1;
  if (write(stop_fd, &one, sizeof(one)) < 0) log_warn("cannot wake idle connections: {}", std::strerror(errno));
}

}  // namespace hocket
