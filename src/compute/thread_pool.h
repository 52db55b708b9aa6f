// compute/thread_pool.h: the threads that run graphs, for one executor or for several that take turns.
//
// There are two ways to use a core: ggml's threads go through a graph together and wait for each other after every
// operation; a crew helps one thread with those operations that are worth it (crew.h). Executor::run() chooses. Threads
// of either kind spin briefly after a run and then sleep. Two pools whose graphs run in turns would therefore fight for
// the cores; executors that share one do not.
//
// Owns     the threads: n_threads − 1 of ggml's, and as many of the crew.
// Threads  one graph at a time: executors that share a pool are used by one thread.
// Errors   create(): kOutOfMemory.
#pragma once

#include <memory>

#include "base/result.h"
#include "compute/crew.h"

struct ggml_threadpool;

namespace hocket {

class ThreadPool {
 public:
  static Result<std::shared_ptr<ThreadPool>> create(int n_threads);  // ≥ 1
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int n_threads() const { return crew_->n_threads(); }
  ggml_threadpool* all() const { return all_; }
  // Of the caller alone, for graphs that the crew helps with.
  ggml_threadpool* caller() const { return caller_; }
  Crew& crew() const { return *crew_; }

 private:
  ThreadPool() = default;

  ggml_threadpool* all_ = nullptr;
  ggml_threadpool* caller_ = nullptr;
  std::unique_ptr<Crew> crew_;
};

}  // namespace hocket
