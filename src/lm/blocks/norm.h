// lm/blocks/norm.h: root-mean-square norm: x / √(mean(x²) + ε) ⊙ weight.
#pragma once

#include "lm/step_graph.h"
#include "weights/weight_set.h"

namespace hocket {

struct RmsNorm {
  Tensor weight = nullptr;  // [n]; nullptr: no such norm in this file
  float eps = 1e-5f;

  static RmsNorm make(WeightSet& weights, const std::string& name, int64_t n, float eps) {
    return {weights.vector(name + ".weight", {n}), eps};
  }
  // x [n, …] → the same shape; rows of n are normalised one by one.
  Tensor run(StepGraph& g, Tensor x) const { return ggml_mul(g.context(), ggml_rms_norm(g.context(), x, eps), weight); }
};

}  // namespace hocket
