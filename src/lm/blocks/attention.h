// lm/blocks/attention.h: grouped-query attention with rope.
//
// Projections, optional offsets, optional RMS norm of each query and key head, rope,
// optional growth of queries with their position, attention over the layer's cache
// with optional sinks, output projection. Source: language-models.md §3.0 "Attention, generic".
#pragma once

#include "lm/blocks/linear.h"
#include "lm/blocks/norm.h"
#include "lm/blocks/temperature.h"
#include "lm/hparams.h"

namespace hocket {

struct AttentionSpec {
  int64_t n_embd = 0;
  int64_t n_head = 0, n_kv_head = 0;
  int64_t head_dim_k = 0, head_dim_v = 0;
  Bias qkv_bias = Bias::kNone;
  Bias output_bias = Bias::kNone;
  bool head_norm = false;           // attn_q_norm, attn_k_norm
  bool optional_head_norm = false;  // the same, where the file has them
  bool sinks = false;               // attn_sinks: a logit per head that only takes part in the softmax's sum
  bool f32_sums = false;            // of the output product
  float norm_eps = 1e-5f;
  RopeSpec rope;
  float scale = 1.0f;
  float softcap = 0.0f;
  AttentionTemperature temperature;

  // The sizes of block `il`, the model's scale and softcap; everything else at its default.
  static AttentionSpec of(const HParams& hp, std::size_t il);
};

class Attention {
 public:
  // Takes `prefix`attn_q, attn_k, attn_v (or attn_qkv where the file has it), attn_output, and the norms.
  static Attention make(WeightSet& weights, const std::string& prefix, const AttentionSpec& spec);
  // h [n_embd, n_tokens], normalised; rope_factors [n_rot / 2] or nullptr → [n_embd, n_queries].
  Tensor run(StepGraph& g, std::size_t layer, Tensor h, Tensor rope_factors) const;

 private:
  AttentionSpec spec_;
  Linear q_, k_, v_, qkv_, output_;
  RmsNorm q_norm_, k_norm_;  // without weight: none
  Tensor sinks_ = nullptr;   // [n_head]
};

}  // namespace hocket
