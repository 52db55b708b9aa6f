#include "engine/flow_control.h"

#include <fmt/format.h>

#include <algorithm>

namespace hocket {

uint64_t FlowControl::next_chunk() {
  if (window_ == 0) return 0;
  const std::lock_guard lock(mutex_);
  // The client's time runs from the chunk that it is asked about.
  if (n_sent_ == n_acknowledged_) last_progress_ = Clock::now();
  return ++n_sent_;
}

bool FlowControl::may_go_on() {
  const std::lock_guard lock(mutex_);
  const bool waits = paused_ || full_locked();
  if (waits && !waiting_since_) {
    waiting_since_ = Clock::now();
    ++waits_.n;
  } else if (!waits && waiting_since_) {
    waits_.ms += ms_since(*waiting_since_);
    waiting_since_.reset();
  }
  return !waits;
}

Result<void> FlowControl::check() const {
  const std::lock_guard lock(mutex_);
  if (paused_ || !full_locked() || Clock::now() - last_progress_ < timeout_) return {};
  Error error(ErrorCode::kCancelled, "the client did not acknowledge what was sent");
  error.reason = "flow_timeout";
  return error;
}

bool FlowControl::may_send(uint64_t chunk) const {
  if (window_ == 0) return true;
  const std::lock_guard lock(mutex_);
  return chunk <= n_acknowledged_ + window_;
}

Result<void> FlowControl::acknowledge(uint64_t chunk) {
  if (window_ == 0) return Error(ErrorCode::kInvalid, "this request has no flow control", "sequence");
  const std::lock_guard lock(mutex_);
  if (chunk > n_sent_)
    return Error(ErrorCode::kInvalid, fmt::format("only {} chunks exist so far", n_sent_), "sequence");
  n_acknowledged_ = std::max(n_acknowledged_, chunk);
  last_progress_ = Clock::now();
  return {};
}

void FlowControl::pause() {
  const std::lock_guard lock(mutex_);
  paused_ = true;
}

void FlowControl::resume() {
  const std::lock_guard lock(mutex_);
  paused_ = false;
  last_progress_ = Clock::now();
}

uint64_t FlowControl::n_chunks() const {
  const std::lock_guard lock(mutex_);
  return n_sent_;
}

FlowControl::Waits FlowControl::waits() const {
  const std::lock_guard lock(mutex_);
  Waits all = waits_;
  if (waiting_since_) all.ms += ms_since(*waiting_since_);
  return all;
}

}  // namespace hocket
