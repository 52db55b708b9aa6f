#include "engine/reply_channel.h"

#include <utility>

namespace hocket {

void ReplyChannel::push(ReplyEvent event) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  if (auto* delta = std::get_if<DeltaEvent>(&event)) delta->sequence = flow_->next_chunk();
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
  changed_.wait_until(lock, until, [&] { return ready_locked() || error_ || (ended_ && events_.empty()); });
  if (ready_locked()) {
    ReplyEvent event = std::move(events_.front());
    events_.pop_front();
    return std::optional<ReplyEvent>(std::move(event));
  }
  if (error_) return *error_;
  return std::optional<ReplyEvent>();
}

bool ReplyChannel::ready_locked() const {
  if (events_.empty()) return false;
  const auto* delta = std::get_if<DeltaEvent>(&events_.front());
  return delta == nullptr || flow_->may_send(delta->sequence);
}

void ReplyChannel::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

bool ReplyChannel::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

}  // namespace hocket
