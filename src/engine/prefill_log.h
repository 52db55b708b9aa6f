// engine/prefill_log.h: says now and then how far a long prompt is, for people who watch the log.
//
// Threads  one user at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/clock.h"

namespace hocket {

class PrefillLog {
 public:
  PrefillLog(std::string request_id, std::size_t n_total, Clock::time_point start)
      : request_id_(std::move(request_id)), n_total_(n_total), start_(start), last_(start) {}

  // A line when the prompt is not complete and the last line (or the start) was five seconds ago.
  std::optional<std::string> line(std::size_t n_done, Clock::time_point now);

 private:
  const std::string request_id_;
  const std::size_t n_total_;
  const Clock::time_point start_;
  Clock::time_point last_;
};

}  // namespace hocket
