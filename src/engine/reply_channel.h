// engine/reply_channel.h: the events of one reply between the generation thread and the client.
//
// Writing never waits: a client that reads slowly holds up nobody. What is kept is bounded by the length of the answer.
// Chunks beyond the window of the client's flow control stay here until they are within it.
//
// Threads  one writer, one reader.
// Errors   next(): the Error that the reply ended with.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "engine/flow_control.h"
#include "engine/requests.h"

namespace hocket {

class ReplyChannel {
 public:
  explicit ReplyChannel(std::shared_ptr<FlowControl> flow = std::make_shared<FlowControl>()) : flow_(std::move(flow)) {}

  void push(ReplyEvent event);  // ReplyDone ends the reply
  void fail(Error error);       // ends the reply; ignored when it has ended

  // The next event; nullopt when `until` passed, or after the end.
  Result<std::optional<ReplyEvent>> next(Clock::time_point until);
  // The window has moved.
  void wake();
  // The writer has ended the reply (events may still wait to be read).
  bool ended() const;

 private:
  bool ready_locked() const;

  const std::shared_ptr<FlowControl> flow_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ReplyEvent> events_;
  std::optional<Error> error_;
  bool ended_ = false;
};

}  // namespace hocket
