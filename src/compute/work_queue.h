// compute/work_queue.h: the units of an operation, which the threads that run it take until none is left, so that one
// which is held up leaves the rest to the others.
//
// The threads are ggml's, each of which calls run() with the same arguments, or, where ggml runs the graph on one
// thread, those of the crew (crew.h) that helps this one.
//
// Threads  as said; one operation at a time.
#pragma once

#include <atomic>
#include <cstdint>

#include "compute/crew.h"

namespace hocket {

class WorkQueue {
 public:
  // How many threads units are to be made for; `nth` as ggml says it.
  static int n_threads(int nth) { return nth == 1 && Crew::current() ? Crew::current()->n_threads() : nth; }

  // Calls unit(i) once for every i in [0, n_units). n_operations: of all units together, about; small work is not
  // shared.
  template <class Unit>
  void run(int64_t n_units, int64_t n_operations, int nth, const Unit& unit) {
    if (nth == 1) {
      Crew* crew = n_operations >= kSharedOperations ? Crew::current() : nullptr;
      if (crew) return crew->run(n_units, unit);
      for (int64_t i = 0; i < n_units; ++i) unit(i);
      return;
    }
    for (int64_t i = take(); i < n_units; i = take()) unit(i);
    leave(nth);
  }

 private:
  // A few microseconds of one core.
  static constexpr int64_t kSharedOperations = 1 << 16;

  int64_t take() { return next_.fetch_add(1, std::memory_order_relaxed); }
  // Ready again for the next run when the last thread has left.
  void leave(int n_threads) {
    if (n_left_.fetch_add(1, std::memory_order_acq_rel) + 1 < n_threads) return;
    next_.store(0, std::memory_order_relaxed);
    n_left_.store(0, std::memory_order_release);
  }

  std::atomic<int64_t> next_{0};
  std::atomic<int> n_left_{0};
};

}  // namespace hocket
