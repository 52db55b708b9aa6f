#include "engine/prefill_log.h"

#include <gtest/gtest.h>

namespace hocket {
namespace {

using std::chrono::seconds;

TEST(PrefillLog, SpeaksEveryFiveSecondsAndNotAtTheEnd) {
  const Clock::time_point start = Clock::now();
  PrefillLog log("abc", 4096, start);
  EXPECT_FALSE(log.line(512, start + seconds(4)));
  EXPECT_EQ(log.line(1024, start + seconds(6)), "request abc: 1024 of 4096 prompt tokens after 6 s");
  EXPECT_FALSE(log.line(1536, start + seconds(10)));
  EXPECT_EQ(log.line(2048, start + seconds(11)), "request abc: 2048 of 4096 prompt tokens after 11 s");
  EXPECT_FALSE(log.line(4096, start + seconds(60)));
}

}  // namespace
}  // namespace hocket
