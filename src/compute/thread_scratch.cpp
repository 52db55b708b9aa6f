#include "compute/thread_scratch.h"

#include <cstddef>
#include <vector>

namespace hocket {

float* scratch_of_thread(int64_t n_floats) {
  constexpr std::size_t kAlignment = 64 / sizeof(float);
  thread_local std::vector<float> scratch;
  if (scratch.size() < static_cast<std::size_t>(n_floats) + kAlignment)
    scratch.resize(static_cast<std::size_t>(n_floats) + kAlignment);
  const auto misplaced = reinterpret_cast<uintptr_t>(scratch.data()) / sizeof(float) % kAlignment;
  return scratch.data() + (kAlignment - misplaced) % kAlignment;
}

}  // namespace hocket
