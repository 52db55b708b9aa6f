// tokenizer/compile_workers.h: runs compilations that cannot be interrupted, for callers that will not wait for ever.
//
// A caller waits until its job is done or its deadline has passed. A job that is late goes on in its thread; until it
// ends it keeps one of the few slots, so that late jobs can never pile up: without a free slot new ones are refused.
//
// Owns     the threads; the destructor waits for jobs that are still running.
// Threads  any.
// Errors   kTimeout when the deadline passes, kBusy when no slot became free in time.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

#include "base/result.h"

namespace hocket {

class CompileWorkers {
 public:
  explicit CompileWorkers(int n_slots) : n_free_(n_slots), n_slots_(n_slots) {}
  ~CompileWorkers();

  // `job` must not throw and must own everything it touches: it may outlive this call.
  Result<void> run(std::function<void()> job, double max_ms);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int n_free_, n_slots_;
};

}  // namespace hocket
