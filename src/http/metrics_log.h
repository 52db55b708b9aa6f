// http/metrics_log.h: a file with one JSON line for each reply: what the reply's `hocket` object says, and when.
//
// Owns     the file.
// Threads  any.
// Errors   kIo with param "metrics-log". A line that cannot be written is lost, and the process log says so once.
// Cost     one write(2) a reply.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace hocket {

class MetricsLog {
 public:
  // Appends; a new file has mode 0600, because requests may carry names.
  static Result<std::unique_ptr<MetricsLog>> open(std::string path);
  explicit MetricsLog(std::string path) : path_(std::move(path)) {}
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  // `object` and "time" in seconds since 1970.
  void write(Json object);
  // Opens the file by its name again; on failure the old one stays in use.
  Result<void> reopen();

 private:
  const std::string path_;
  std::mutex mutex_;
  int file_ = -1;
  bool failing_ = false;
};

}  // namespace hocket
