#include "engine/reply_channel.h"

#include <utility>

namespace hocket {

void ReplyChannel::push(ReplyEvent event) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  ended_ = std::holds_alternative<ReplyDone>(event);
  events_.push_back(std::move(event));
  changed_.notify_all();
}

void ReplyChannel::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  ended_ = true;
  error_ = std::move(error);
  changed_.notify_all();
}

Result<std::optional<ReplyEvent>> ReplyChannel::next(Clock::time_point until) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, until, [&] { return !events_.empty() || ended_; });
  if (!events_.empty()) {
    ReplyEvent event = std::move(events_.front());
    events_.pop_front();
    return std::optional<ReplyEvent>(std::move(event));
  }
  if (error_) return *error_;
  return std::optional<ReplyEvent>();
}

bool ReplyChannel::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

}  // namespace hocket
