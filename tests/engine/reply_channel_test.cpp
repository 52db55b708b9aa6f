#include "engine/reply_channel.h"

#include <gtest/gtest.h>

#include <thread>

namespace hocket {
namespace {

Clock::time_point soon() {
  return Clock::now() + std::chrono::milliseconds(20);
}

TEST(ReplyChannel, GivesEventsInOrderAndThenNothing) {
  ReplyChannel channel;
  channel.push(ProgressEvent{1, 2});
  channel.push(ReplyDone{});
  channel.push(ProgressEvent{2, 2});  // after the end: ignored
  auto event = channel.next(soon());
  ASSERT_TRUE(event.ok() && event->has_value());
  EXPECT_TRUE(std::holds_alternative<ProgressEvent>(**event));
  event = channel.next(soon());
  ASSERT_TRUE(event.ok() && event->has_value());
  EXPECT_TRUE(std::holds_alternative<ReplyDone>(**event));
  event = channel.next(soon());
  ASSERT_TRUE(event.ok());
  EXPECT_FALSE(event->has_value());
}

TEST(ReplyChannel, AnErrorComesAfterWhatWasSentBefore) {
  ReplyChannel channel;
  channel.push(ProgressEvent{1, 2});
  channel.fail(Error(ErrorCode::kTimeout, "late"));
  channel.fail(Error(ErrorCode::kInternal, "ignored"));
  EXPECT_TRUE(channel.ended());
  EXPECT_TRUE(channel.next(soon()).ok());
  EXPECT_EQ(channel.next(soon()).error().code, ErrorCode::kTimeout);
}

TEST(ReplyChannel, WaitsForTheWriter) {
  ReplyChannel channel;
  EXPECT_FALSE(channel.next(soon())->has_value());
  std::thread writer([&] { channel.push(ProgressEvent{1, 1}); });
  const auto event = channel.next(Clock::now() + std::chrono::seconds(20));
  writer.join();
  ASSERT_TRUE(event.ok());
  EXPECT_TRUE(event->has_value());
}

}  // namespace
}  // namespace hocket
