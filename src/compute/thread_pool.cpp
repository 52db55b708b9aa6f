#include "compute/thread_pool.h"

#include <fmt/format.h>
#include <ggml-cpu.h>

namespace hocket {

Result<std::shared_ptr<ThreadPool>> ThreadPool::create(int n_threads) {
  ggml_threadpool_params params = ggml_threadpool_params_default(n_threads);
  ggml_threadpool* threads = ggml_threadpool_new(&params);
  if (!threads) return Error(ErrorCode::kOutOfMemory, fmt::format("cannot start {} threads", n_threads));
  return std::shared_ptr<ThreadPool>(new ThreadPool(threads, n_threads));
}

ThreadPool::~ThreadPool() {
  ggml_threadpool_free(threads_);
}

}  // namespace hocket
