// music/blocks/projection.h: a product with a weight and an offset, and the RMS norm.
//
// Owns     nothing: weights belong to the network's WeightSet.
// Threads  const.
// Source   ace-step.md N-1, §2.4.
#pragma once

#include <string>

#include "compute/graph.h"
#include "music/blocks/network_graph.h"
#include "weights/weight_set.h"

namespace hocket {

struct Projection {
  Tensor weight = nullptr;  // [n_in, n_out]
  Tensor bias = nullptr;    // [n_out] or nullptr

  // Takes `name`.weight and, when asked, `name`.bias.
  static Projection make(WeightSet& weights, const std::string& name, int64_t n_in, int64_t n_out, bool with_bias);
  // x [n_in, n] → [n_out, n].
  Tensor run(NetworkGraph& g, Tensor x) const;
};

struct RmsScale {
  Tensor weight = nullptr;  // [n]
  float eps = 1e-6f;

  static RmsScale make(WeightSet& weights, const std::string& name, int64_t n, float eps);
  // x [n, …] → the same shape.
  Tensor run(NetworkGraph& g, Tensor x) const;
};

}  // namespace hocket
