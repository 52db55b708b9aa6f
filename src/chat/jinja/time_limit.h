// chat/jinja/time_limit.h: how long one thread may still work.
//
// Counts the time that the thread itself ran: what fits on an idle machine also fits on one that has much else to do,
// so the outcome does not depend on the load.
//
// Threads  passed() by the thread that made it.
// Cost     passed() reads the wall clock, and asks the kernel only after the limit has passed there.
#pragma once

#include <chrono>

namespace hocket::chat_jinja {

class TimeLimit {
 public:
  explicit TimeLimit(double max_ms);
  bool passed() const;

 private:
  const std::chrono::nanoseconds max_;
  const std::chrono::steady_clock::time_point wall_start_;
  const std::chrono::nanoseconds own_start_;
};

}  // namespace hocket::chat_jinja
