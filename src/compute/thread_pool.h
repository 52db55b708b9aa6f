// compute/thread_pool.h: worker threads of graphs, for one executor or for several that take turns.
//
// Workers spin briefly after a run and then sleep. Two pools whose graphs run in turns would therefore fight for the
// cores; executors that share one do not.
//
// Owns     the threads.
// Threads  one graph at a time: executors that share a pool are used by one thread.
// Errors   create(): kOutOfMemory.
#pragma once

#include <memory>

#include "base/result.h"

struct ggml_threadpool;

namespace hocket {

class ThreadPool {
 public:
  static Result<std::shared_ptr<ThreadPool>> create(int n_threads);  // ≥ 1
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int n_threads() const { return n_threads_; }
  ggml_threadpool* get() const { return threads_; }

 private:
  ThreadPool(ggml_threadpool* threads, int n_threads) : threads_(threads), n_threads_(n_threads) {}

  ggml_threadpool* threads_;
  int n_threads_;
};

}  // namespace hocket
