// music/dit/timestep.h: a time in (0, 1] as a vector of sines, and what the network makes of it.
//
// Threads  const.
// Source   ace-step.md N-31.
#pragma once

#include <string>
#include <vector>

#include "music/blocks/projection.h"

namespace hocket {

inline constexpr int64_t kSinusoidWidth = 256;

// Cosines, then sines, of 1000 · t at 128 falling frequencies.
std::vector<float> timestep_sinusoid(float t);

class TimestepEmbedder {
 public:
  // Takes `prefix`.linear_1, .linear_2 and .time_proj.
  static TimestepEmbedder make(WeightSet& weights, const std::string& prefix, int64_t n_embd);

  struct Embedding {
    Tensor embedding;   // [n_embd]
    Tensor projection;  // [6 · n_embd]
  };
  // sinusoid [256]. `tap` is the suffix of the names of taps.
  Embedding run(NetworkGraph& g, Tensor sinusoid, const std::string& tap) const;

 private:
  Projection first_, second_, project_;
};

}  // namespace hocket
