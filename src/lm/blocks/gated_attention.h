// lm/blocks/gated_attention.h: the attention layer of Qwen3-Next and Qwen3.5: every head's output is multiplied by σ of
// a gate that comes from the same projection as its query.
//
// Source   language-models.md §3.5.
#pragma once

#include "lm/blocks/attention.h"

namespace hocket {

class GatedAttention {
 public:
  // Takes `prefix`attn_q [n_embd, 2 · head_dim · n_head] (of each head the query and then the gate), attn_k, attn_v,
  // attn_q_norm, attn_k_norm, attn_output. Keys and values have one head size.
  static GatedAttention make(WeightSet& weights, const std::string& prefix, const AttentionSpec& spec);
  // h [n_embd, n_tokens], normalised → [n_embd, n_queries].
  Tensor run(StepGraph& g, std::size_t layer, Tensor h) const;

 private:
  AttentionSpec spec_;
  Linear q_gate_, k_, v_, output_;
  RmsNorm q_norm_, k_norm_;
};

}  // namespace hocket
