#include "compute/thread_pool.h"

#include <fmt/format.h>
#include <ggml-cpu.h>

namespace hocket {
namespace {

ggml_threadpool* pool_of(int n_threads) {
  ggml_threadpool_params params = ggml_threadpool_params_default(n_threads);
  return ggml_threadpool_new(&params);
}

}  // namespace

Result<std::shared_ptr<ThreadPool>> ThreadPool::create(int n_threads) {
  std::shared_ptr<ThreadPool> pool(new ThreadPool());
  TRY_ASSIGN(pool->crew_, Crew::create(n_threads));
  pool->all_ = pool_of(n_threads);
  pool->caller_ = pool_of(1);
  if (!pool->all_ || !pool->caller_)
    return Error(ErrorCode::kOutOfMemory, fmt::format("cannot start {} threads", n_threads));
  return pool;
}

ThreadPool::~ThreadPool() {
  if (all_) ggml_threadpool_free(all_);
  if (caller_) ggml_threadpool_free(caller_);
}

}  // namespace hocket
