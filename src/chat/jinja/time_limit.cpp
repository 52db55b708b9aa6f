#include "chat/jinja/time_limit.h"

#include <ctime>

namespace hocket::chat_jinja {
namespace {

std::chrono::nanoseconds own_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

TimeLimit::TimeLimit(double max_ms)
    : max_(static_cast<int64_t>(max_ms * 1e6)), wall_start_(std::chrono::steady_clock::now()), own_start_(own_time()) {}

bool TimeLimit::passed() const {
  // A thread never runs longer than the wall clock does.
  if (std::chrono::steady_clock::now() - wall_start_ <= max_) return false;
  return own_time() - own_start_ > max_;
}

}  // namespace hocket::chat_jinja
