// music/blocks/attention.h: grouped-query attention with an RMS norm of every query and key head.
//
// Owns     nothing: weights belong to the network's WeightSet.
// Threads  const.
// Source   ace-step.md N-2 to N-4, N-33.
#pragma once

#include <string>

#include "music/blocks/attend.h"
#include "music/blocks/layer_sizes.h"
#include "music/blocks/projection.h"

namespace hocket {

class AttentionBlock {
 public:
  // Takes `prefix`{q,k,v,o}_proj.weight and {q,k}_norm.weight.
  static AttentionBlock make(WeightSet& weights, const std::string& prefix, const LayerSizes& sizes, float eps);

  // h [n_embd, n · n_samples] attends to itself; positions I32 [n] rotate queries and keys.
  Tensor self(NetworkGraph& g, Tensor h, int64_t n, int64_t n_samples, Tensor positions, float rope_base,
              const Sight& sight) const;
  // h attends to c [n_embd, n_keys · n_samples], without positions.
  Tensor cross(NetworkGraph& g, Tensor h, int64_t n, Tensor c, int64_t n_keys, int64_t n_samples,
               const Sight& sight) const;

 private:
  Tensor heads(NetworkGraph& g, const Projection& projection, Tensor x, int64_t n_head, int64_t n,
               int64_t n_samples) const;

  LayerSizes sizes_;
  Projection q_, k_, v_, output_;
  RmsScale q_norm_, k_norm_;
};

}  // namespace hocket
