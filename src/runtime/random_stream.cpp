#include "runtime/random_stream.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <random>

namespace hocket {

uint64_t random_seed() {
  static std::atomic<uint64_t> n_calls{0};
  uint64_t seed = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  seed += n_calls.fetch_add(1) << 40;
  try {
    std::random_device device;
    seed ^= (static_cast<uint64_t>(device()) << 32) ^ device();
  } catch (const std::exception&) {
    // No entropy source: clock and counter still keep concurrent requests apart.
  }
  return RandomStream(seed).next() >> 11;
}

}  // namespace hocket
