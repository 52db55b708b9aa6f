#include "http/metrics_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/log.h"

namespace hocket {

Result<std::unique_ptr<MetricsLog>> MetricsLog::open(std::string path) {
  auto log = std::make_unique<MetricsLog>(std::move(path));
  TRY(log->reopen());
  return log;
}

MetricsLog::~MetricsLog() {
  if (file_ >= 0) ::close(file_);
}

Result<void> MetricsLog::reopen() {
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) {
    return Error(ErrorCode::kIo, fmt::format("cannot write the metrics log {}: {}", path_, std::strerror(errno)),
                 "metrics-log");
  }
  const std::lock_guard lock(mutex_);
  if (file_ >= 0) ::close(file_);
  file_ = file;
  failing_ = false;
  return {};
}

void MetricsLog::write(Json object) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  object["time"] = static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()) / 1000;
  const std::string line = dump_json(object) + "\n";
  const std::lock_guard lock(mutex_);
  const bool written = ::write(file_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (!written && !failing_) log_error("cannot write to the metrics log {}: {}", path_, std::strerror(errno));
  failing_ = !written;
}

}  // namespace hocket
