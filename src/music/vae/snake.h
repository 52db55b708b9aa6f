// music/vae/snake.h: the activation x + sin²(e^α · x) / e^β, α and β of each channel.
//
// With code of our own one pass over the signal; elsewhere five operators of ggml.
//
// Threads  const.
// Cost     memory-bound.
// Source   ace-step.md N-41.
#pragma once

#include <string>

#include "music/blocks/network_graph.h"
#include "music/vae/derived_weights.h"

namespace hocket {

class Snake {
 public:
  // Takes `name`.alpha and `name`.beta [1, n, 1].
  static Snake make(DerivedWeights& weights, const std::string& name, int64_t n_channels);
  // x [n_channels, n] → the same shape.
  Tensor run(NetworkGraph& g, Tensor x) const;

 private:
  Tensor frequency_ = nullptr;            // [n_channels]: e^α
  Tensor height_ = nullptr;               // [n_channels]: e^−β
  const KernelTable* kernels_ = nullptr;  // nullptr: operators of ggml
};

}  // namespace hocket
