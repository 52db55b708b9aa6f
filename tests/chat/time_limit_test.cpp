#include "chat/jinja/time_limit.h"

#include <gtest/gtest.h>

#include <ctime>
#include <thread>

namespace hocket::chat_jinja {
namespace {

double own_ms() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

TEST(TimeLimit, CountsWorkAndNotWaiting) {
  const TimeLimit limit(50);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(limit.passed()) << "the thread did not run";
  const double start = own_ms();
  while (own_ms() - start < 60) {
  }
  EXPECT_TRUE(limit.passed());
}

TEST(TimeLimit, NothingIsOverAtOnce) {
  const TimeLimit limit(0);
  const double start = own_ms();
  while (own_ms() - start < 1) {
  }
  EXPECT_TRUE(limit.passed());
}

}  // namespace
}  // namespace hocket::chat_jinja
