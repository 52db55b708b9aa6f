#include "lm/blocks/pre_norm_block.h"

namespace hocket {

PreNormBlock PreNormBlock::make(WeightSet& weights, const std::string& prefix, const AttentionSpec& attn,
                                FeedForward ffn, const PreNormStyle& style) {
  const auto norm = [&](const char* name) { return RmsNorm::make(weights, prefix + name, attn.n_embd, attn.norm_eps); };
  PreNormBlock block{
      norm("attn_norm"),   Attention::make(weights, prefix, attn), norm(style.ffn_norm), std::move(ffn), {}, {},
      style.residual_scale};
  if (style.post_norms) {
    block.post_attention_norm = norm("post_attention_norm");
    block.post_ffw_norm = norm("post_ffw_norm");
  }
  return block;
}

Tensor PreNormBlock::run(StepGraph& g, std::size_t il, Tensor x, Tensor rope_factors) const {
  const auto add = [&](Tensor to, Tensor y, const RmsNorm& post_norm) {
    if (post_norm.weight) y = post_norm.run(g, y);
    if (residual_scale != 1.0f) y = ggml_scale(g.context(), y, residual_scale);
    return g.residual(to, y);
  };
  x = add(x, attn.run(g, il, attn_norm.run(g, x), rope_factors), post_attention_norm);
  return add(x, ffn.run(g, ffn_norm.run(g, x)), post_ffw_norm);
}

}  // namespace hocket
