// music/blocks/encoder_stack.h: the Qwen3-shaped layers that every encoder of this family is made of, and the norm
// behind them.
//
// Owns     nothing: weights belong to the network's WeightSet.
// Threads  const.
// Errors   read_sizes(): kBadModel.
// Source   ace-step.md N-4, §§5.3, 5.4, 5.6.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "music/blocks/attention.h"
#include "music/blocks/swiglu.h"

namespace hocket {

struct EncoderNumbers {
  float rope_base = 1e6f;
  float eps = 1e-6f;
};

class EncoderStack {
 public:
  // Sizes of the layers at `prefix`layers.N.; equal in all of them.
  static Result<LayerSizes> read_sizes(const GgufFile& file, const std::string& prefix);
  static EncoderStack make(WeightSet& weights, const std::string& prefix, std::size_t n_layer, const LayerSizes& sizes,
                           const EncoderNumbers& numbers);

  // x [n_embd, n · n_samples] → the same after all layers and the norm. Taps are called `tap`_layerN.
  Tensor run(NetworkGraph& g, Tensor x, int64_t n, int64_t n_samples, const std::function<Sight(std::size_t il)>& sight,
             const std::string& tap) const;
  // Nodes that run() may make at most.
  std::size_t max_nodes(int64_t n, int64_t n_samples) const;

 private:
  struct Layer {
    RmsScale attention_norm, mlp_norm;
    AttentionBlock attention;
    SwigluBlock mlp;
  };

  LayerSizes sizes_;
  EncoderNumbers numbers_;
  std::vector<Layer> layers_;
  RmsScale norm_;
};

}  // namespace hocket
