// tests/support/exact_runner.h: runners that differ from a naive evaluation by the order of F32 sums only.
#pragma once

#include "lm/runner.h"

namespace hocket::test {

// F32 caches, exact attention, one thread.
inline RunnerOptions exact_options(std::size_t n_rollback = 1) {
  RunnerOptions options;
  options.n_ctx = 256;
  options.n_batch = 64;
  options.n_threads = 1;
  options.cache_k = options.cache_v = CacheType::kF32;
  options.n_rollback = n_rollback;
  return options;
}

}  // namespace hocket::test
