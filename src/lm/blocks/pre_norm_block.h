// lm/blocks/pre_norm_block.h: the plain transformer layer: x += attention(norm(x)); x += ffn(norm(x)).
//
// Some families normalise each sublayer's result too, or scale it, before it is added.
// Source: language-models.md §3.0 "Residual frame", §§3.3, 3.11, 3.17.
#pragma once

#include "lm/blocks/attention.h"
#include "lm/blocks/feed_forward.h"
#include "lm/blocks/norm.h"

namespace hocket {

struct PreNormStyle {
  const char* ffn_norm = "ffn_norm";  // the name in the file of the norm before the feed-forward
  bool post_norms = false;            // post_attention_norm and post_ffw_norm, of what is added to x
  float residual_scale = 1.0f;        // factor of what is added to x
};

struct PreNormBlock {
  RmsNorm attn_norm;
  Attention attn;
  RmsNorm ffn_norm;
  FeedForward ffn;
  RmsNorm post_attention_norm, post_ffw_norm;  // without weight: none
  float residual_scale = 1.0f;

  // Takes `prefix`attn_norm and the other norms, and what the attention takes; `ffn` is made by the architecture.
  static PreNormBlock make(WeightSet& weights, const std::string& prefix, const AttentionSpec& attn, FeedForward ffn,
                           const PreNormStyle& style = {});
  // x [n_embd, n_tokens] → [n_embd, n_tokens], or the wanted rows in the last layer.
  Tensor run(StepGraph& g, std::size_t il, Tensor x, Tensor rope_factors) const;
};

}  // namespace hocket
