#include "lm/blocks/gated_attention.h"

namespace hocket {

GatedAttention GatedAttention::make(WeightSet& weights, const std::string& prefix, const AttentionSpec& spec) {
  const int64_t head_dim = spec.head_dim_k, n_kv = spec.n_kv_head * head_dim;
  GatedAttention a;
  a.spec_ = spec;
  a.q_gate_ = Linear::make(weights, prefix + "attn_q", spec.n_embd, 2 * head_dim * spec.n_head);
  a.k_ = Linear::make(weights, prefix + "attn_k", spec.n_embd, n_kv);
  a.v_ = Linear::make(weights, prefix + "attn_v", spec.n_embd, n_kv);
  a.q_norm_ = RmsNorm::make(weights, prefix + "attn_q_norm", head_dim, spec.norm_eps);
  a.k_norm_ = RmsNorm::make(weights, prefix + "attn_k_norm", head_dim, spec.norm_eps);
  a.output_ = Linear::make(weights, prefix + "attn_output", spec.n_head * head_dim, spec.n_embd);
  return a;
}

Tensor GatedAttention::run(StepGraph& g, std::size_t layer, Tensor h) const {
  ggml_context* c = g.context();
  const int64_t head_dim = spec_.head_dim_k;
  Tensor both = q_gate_.run(g, g.query_rows(h));  // [2 · head_dim · n_head, n_queries]
  const int64_t n = both->ne[1];
  const auto half = [&](int64_t first) {
    return ggml_view_3d(c, both, head_dim, spec_.n_head, n, ggml_row_size(both->type, 2 * head_dim), both->nb[1],
                        ggml_row_size(both->type, first));
  };
  Tensor k = ggml_reshape_3d(c, k_.run(g, h), head_dim, spec_.n_kv_head, h->ne[1]);
  Tensor v = ggml_reshape_3d(c, v_.run(g, h), head_dim, spec_.n_kv_head, h->ne[1]);
  Tensor q = g.rope(q_norm_.run(g, half(0)), g.query_positions(), spec_.rope, nullptr);
  k = g.rope(k_norm_.run(g, k), g.positions(), spec_.rope, nullptr);
  Tensor o = g.attend(layer, q, k, v, {.scale = spec_.scale, .softcap = spec_.softcap});
  Tensor gate = ggml_reshape_2d(c, ggml_cont(c, half(head_dim)), head_dim * spec_.n_head, n);
  return output_.run(g, ggml_mul(c, o, ggml_sigmoid(c, gate)));
}

}  // namespace hocket
