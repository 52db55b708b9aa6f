// lm/blocks/short_conv.h: causal depthwise convolutions over the last few tokens, with their state.
//
//   y_t[c] = Σ_{j<K} w[j, c] · u_{t−K+1+j}[c]
//
// A layer may have several; their states stand one after another in the layer's conv row, each as the last K − 1 inputs
// [K − 1, C], oldest first.
//
// Source   language-models.md §§3.12, 3.13.
#pragma once

#include <vector>

#include "lm/step_graph.h"
#include "weights/weight_set.h"

namespace hocket {

struct ShortConv {
  Tensor kernel = nullptr;  // [K, C] as the file has it: ones may stand between

  static ShortConv make(WeightSet& weights, const std::string& name, const Shape& shape) {
    return {weights.vector(name, shape)};
  }
};

// Runs the convolutions of a layer on inputs u_i [C_i, n of a lane, n_lanes], one for each, and stores the layer's new
// conv state. → [C_i, n of a lane, n_lanes] each.
std::vector<Tensor> run_convs(StepGraph& g, std::size_t layer, const LaneGroup& group,
                              const std::vector<ShortConv>& convs, const std::vector<Tensor>& inputs);

// Floats of a layer's conv row.
inline int64_t conv_state_size(int64_t kernel, int64_t n_channels) {
  return (kernel - 1) * n_channels;
}

}  // namespace hocket
