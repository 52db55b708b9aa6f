#include "lm/blocks/attention.h"

namespace hocket {

AttentionSpec AttentionSpec::of(const HParams& hp, std::size_t il) {
  AttentionSpec spec;
  spec.n_embd = hp.n_embd;
  spec.n_head = hp.n_head[il];
  spec.n_kv_head = hp.n_kv_head[il];
  spec.head_dim_k = hp.head_dim_k;
  spec.head_dim_v = hp.head_dim_v;
  spec.norm_eps = hp.rms_eps;
  spec.rope = hp.rope;
  spec.scale = hp.attention_scale();
  spec.softcap = hp.attn_softcap;
  return spec;
}

Attention Attention::make(WeightSet& weights, const std::string& prefix, const AttentionSpec& spec) {
  Attention a;
  a.spec_ = spec;
  const int64_t n_q = spec.n_head * spec.head_dim_k;
  const int64_t n_k = spec.n_kv_head * spec.head_dim_k;
  const int64_t n_v = spec.n_kv_head * spec.head_dim_v;
  if (weights.has(prefix + "attn_qkv.weight", {spec.n_embd, n_q + n_k + n_v})) {
    a.qkv_ = Linear::make(weights, prefix + "attn_qkv", spec.n_embd, n_q + n_k + n_v, spec.qkv_bias);
  } else {
    a.q_ = Linear::make(weights, prefix + "attn_q", spec.n_embd, n_q, spec.qkv_bias);
    a.k_ = Linear::make(weights, prefix + "attn_k", spec.n_embd, n_k, spec.qkv_bias);
    a.v_ = Linear::make(weights, prefix + "attn_v", spec.n_embd, n_v, spec.qkv_bias);
  }
  a.output_ =
      Linear::make(weights, prefix + "attn_output", spec.n_head * spec.head_dim_v, spec.n_embd, spec.output_bias);
  a.output_.f32_sums = spec.f32_sums;
  if (spec.head_norm || (spec.optional_head_norm && weights.has(prefix + "attn_q_norm.weight", {spec.head_dim_k}))) {
    a.q_norm_ = RmsNorm::make(weights, prefix + "attn_q_norm", spec.head_dim_k, spec.norm_eps);
    a.k_norm_ = RmsNorm::make(weights, prefix + "attn_k_norm", spec.head_dim_k, spec.norm_eps);
  }
  if (spec.sinks) a.sinks_ = weights.vector(prefix + "attn_sinks.weight", {spec.n_head});
  return a;
}

Tensor Attention::run(StepGraph& g, std::size_t layer, Tensor h, Tensor rope_factors) const {
  ggml_context* c = g.context();
  // Rows [first, first + n_head · head_dim) of a projection as heads [head_dim, n_head, n_tokens].
  const auto heads = [&](Tensor x, int64_t first, int64_t head_dim, int64_t n_head) {
    return ggml_view_3d(c, x, head_dim, n_head, x->ne[1], ggml_row_size(x->type, head_dim), x->nb[1],
                        ggml_row_size(x->type, first));
  };
  Tensor q, k, v;
  if (qkv_.weight) {
    const int64_t n_q = spec_.n_head * spec_.head_dim_k, n_k = spec_.n_kv_head * spec_.head_dim_k;
    Tensor qkv = qkv_.run(g, h);
    q = heads(g.query_rows(qkv), 0, spec_.head_dim_k, spec_.n_head);
    k = heads(qkv, n_q, spec_.head_dim_k, spec_.n_kv_head);
    v = heads(qkv, n_q + n_k, spec_.head_dim_v, spec_.n_kv_head);
  } else {
    q = heads(q_.run(g, g.query_rows(h)), 0, spec_.head_dim_k, spec_.n_head);
    k = heads(k_.run(g, h), 0, spec_.head_dim_k, spec_.n_kv_head);
    v = heads(v_.run(g, h), 0, spec_.head_dim_v, spec_.n_kv_head);
  }
  if (q_norm_.weight) {
    q = q_norm_.run(g, q);
    k = k_norm_.run(g, k);
  }
  q = g.rope(q, g.query_positions(), spec_.rope, rope_factors);
  k = g.rope(k, g.positions(), spec_.rope, rope_factors);
  q = spec_.temperature.run(g, q);
  Tensor o = g.attend(layer, q, k, v, {.scale = spec_.scale, .softcap = spec_.softcap, .sinks = sinks_});
  return output_.run(g, o);
}

}  // namespace hocket
