// cli/interruptible.h: while one exists, Ctrl-C cancels the work that looks at its token.
//
// Threads  the main thread; one more watches. One at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "base/cancel.h"
#include "cli/signals.h"

namespace hocket {

class Interruptible {
 public:
  Interruptible()
      : watch_([this] {
          constexpr auto kPause = std::chrono::milliseconds(50);
          for (; !done_; std::this_thread::sleep_for(kPause))
            if (interrupt_.take()) cancel_.cancel();
        }) {}
  ~Interruptible() {
    done_ = true;
    watch_.join();
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  const CancelToken& cancel() const { return cancel_; }

 private:
  CancelToken cancel_;
  InterruptFlag interrupt_;
  std::atomic<bool> done_{false};
  std::thread watch_;
};

}  // namespace hocket
