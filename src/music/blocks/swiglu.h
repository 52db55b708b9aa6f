// music/blocks/swiglu.h: gated feed-forward: down( silu(gate · h) ⊙ (up · h) ).
//
// Threads  const.
// Source   ace-step.md N-4.
#pragma once

#include <string>

#include "music/blocks/layer_sizes.h"
#include "music/blocks/projection.h"

namespace hocket {

struct SwigluBlock {
  Projection gate, up, down;

  // Takes `prefix`{gate,up,down}_proj.weight.
  static SwigluBlock make(WeightSet& weights, const std::string& prefix, const LayerSizes& sizes) {
    return {Projection::make(weights, prefix + "gate_proj", sizes.n_embd, sizes.n_ff, false),
            Projection::make(weights, prefix + "up_proj", sizes.n_embd, sizes.n_ff, false),
            Projection::make(weights, prefix + "down_proj", sizes.n_ff, sizes.n_embd, false)};
  }
  // h [n_embd, n] → [n_embd, n].
  Tensor run(NetworkGraph& g, Tensor h) const {
    return down.run(g, ggml_swiglu_split(g.context(), gate.run(g, h), up.run(g, h)));
  }
};

}  // namespace hocket
