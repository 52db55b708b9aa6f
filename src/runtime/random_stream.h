// runtime/random_stream.h: the random numbers of one sequence, the same on every platform.
//
// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014). The state is started from the
// mixed seed, so that neighbouring seeds give unrelated streams.
//
// Threads  one user at a time.
#pragma once

#include <cstdint>

namespace hocket {

class RandomStream {
 public:
  explicit RandomStream(uint64_t seed) : state_(mix(seed)) {}

  uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15u); }
  // In [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

// A seed from the system, below 2^53 so that every JSON reader can send it back exactly.
uint64_t random_seed();

}  // namespace hocket
