// compute/work_queue.h: blocks of work that the threads of an operation take until none is left, so that one which is
// held up leaves the rest to the others. Ready again for the next run when the last thread has left.
//
// Threads  any; every thread of the operation leaves once.
#pragma once

#include <atomic>
#include <cstdint>

namespace hocket {

class WorkQueue {
 public:
  int64_t take() { return next_.fetch_add(1, std::memory_order_relaxed); }
  void leave(int n_threads) {
    if (n_left_.fetch_add(1, std::memory_order_acq_rel) + 1 < n_threads) return;
    next_.store(0, std::memory_order_relaxed);
    n_left_.store(0, std::memory_order_release);
  }

 private:
  std::atomic<int64_t> next_{0};
  std::atomic<int> n_left_{0};
};

}  // namespace hocket
