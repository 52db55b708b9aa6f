// lm/blocks/pre_norm_block.h: the plain transformer layer: x += attention(norm(x)); x += mlp(norm(x)).
//
// Source: language-models.md §3.0 "Residual frame".
#pragma once

#include "lm/blocks/attention.h"
#include "lm/blocks/mlp.h"
#include "lm/blocks/norm.h"

namespace hocket {

struct PreNormBlock {
  RmsNorm attn_norm;
  Attention attn;
  RmsNorm ffn_norm;
  GatedMlp ffn;

  // Takes `prefix`attn_norm and ffn_norm, and what the attention takes; `ffn` is made by the architecture.
  static PreNormBlock make(WeightSet& weights, const std::string& prefix, const AttentionSpec& attn, GatedMlp ffn) {
    return {RmsNorm::make(weights, prefix + "attn_norm", attn.n_embd, attn.norm_eps),
            Attention::make(weights, prefix, attn),
            RmsNorm::make(weights, prefix + "ffn_norm", attn.n_embd, attn.norm_eps), std::move(ffn)};
  }
  // x [n_embd, n_tokens] → [n_embd, n_tokens], or the wanted rows in the last layer.
  Tensor run(StepGraph& g, std::size_t il, Tensor x, Tensor rope_factors) const {
    x = g.residual(x, attn.run(g, il, attn_norm.run(g, x), rope_factors));
    return g.residual(x, ffn.run(g, ffn_norm.run(g, x)));
  }
};

}  // namespace hocket
