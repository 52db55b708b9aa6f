// engine/flow_control.h: when a request may go on: acknowledgements of its client, and pauses.
//
// Text chunks of a reply are numbered from 1. With a window, the request waits between two steps while so many chunks
// are not acknowledged; a client that neither acknowledges nor leaves is given up after a time.
//
// Owns     counters.
// Threads  any.
// Errors   acknowledge(): kInvalid naming "sequence" for a chunk that does not exist yet, or without a window. check():
//          kCancelled with reason "flow_timeout".
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/clock.h"
#include "base/result.h"

namespace hocket {

class FlowControl {
 public:
  FlowControl() = default;
  // window 0: none.
  FlowControl(std::size_t window, Clock::duration timeout) : window_(window), timeout_(timeout) {}

  // ---- the writer
  // The number of the next text chunk; 0 without a window.
  uint64_t next_chunk();
  // Whether the request may take part in a step. Waiting times are counted from one call to another.
  bool may_go_on();
  Result<void> check() const;

  // ---- the reader
  // Whether this chunk is within the window.
  bool may_send(uint64_t chunk) const;

  // ---- control
  Result<void> acknowledge(uint64_t chunk);
  void pause();
  void resume();

  uint64_t n_chunks() const;
  struct Waits {
    std::size_t n = 0;
    double ms = 0;
  };
  Waits waits() const;

 private:
  bool full_locked() const { return window_ > 0 && n_sent_ - n_acknowledged_ >= window_; }

  const std::size_t window_ = 0;
  const Clock::duration timeout_ = Clock::duration::max();
  mutable std::mutex mutex_;
  uint64_t n_sent_ = 0, n_acknowledged_ = 0;
  bool paused_ = false;
  Clock::time_point last_progress_ = Clock::now();  // of the client
  std::optional<Clock::time_point> waiting_since_;
  Waits waits_;
};

}  // namespace hocket
