// base/clock.h: durations in milliseconds, as numbers that go into replies and logs.
#pragma once

#include <chrono>

namespace hocket {

using Clock = std::chrono::steady_clock;

inline double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}
inline double ms_since(Clock::time_point from) {
  return ms_between(from, Clock::now());
}

}  // namespace hocket
