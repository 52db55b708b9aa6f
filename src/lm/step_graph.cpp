#include "lm/step_graph.h"

#include "base/check.h"

namespace hocket {

StepGraph::StepGraph(const StepShape& shape, const KvCache& cache, bool flash_attention, std::size_t max_nodes)
    : shape_(shape), graph_(max_nodes), cache_(cache), flash_attention_(flash_attention) {
  const auto n_tokens = static_cast<int64_t>(shape.n_tokens);
  const auto n_outputs = static_cast<int64_t>(shape.n_outputs);
  tokens_ = graph_.input(GGML_TYPE_I32, {n_tokens}, "tokens");
  positions_ = graph_.input(GGML_TYPE_I32, {n_tokens}, "positions");
  const bool trim = n_outputs != n_tokens;
  if (trim) {
    output_rows_ = graph_.input(GGML_TYPE_I32, {n_outputs}, "output_rows");
    output_positions_ = graph_.input(GGML_TYPE_I32, {n_outputs}, "output_positions");
  }
  for (std::size_t p = 0; p < cache.n_pools(); ++p) {
    const auto n_kv = static_cast<int64_t>(shape.n_kv[p]);
    PoolInputs inputs{};
    inputs.cells = graph_.input(GGML_TYPE_I64, {n_tokens}, "cells");
    inputs.mask = graph_.input(GGML_TYPE_F16, {n_kv, n_tokens}, "mask");
    if (trim) inputs.output_mask = graph_.input(GGML_TYPE_F16, {n_kv, n_outputs}, "output_mask");
    pools_.push_back(inputs);
  }
}

void StepGraph::set_result(Tensor result) {
  result_ = result;
  graph_.output(result, "result");
}

Tensor StepGraph::query_rows(Tensor x) {
  return trims() ? ggml_get_rows(context(), x, output_rows_) : x;
}

Tensor StepGraph::residual(Tensor x, Tensor y) {
  if (x->ne[1] != y->ne[1]) x = query_rows(x);
  return ggml_add(context(), x, y);
}

Tensor StepGraph::rope(Tensor x, Tensor positions, const RopeSpec& spec, Tensor factors) {
  if (spec.kind == RopeKind::kNone) return x;
  const int mode = spec.kind == RopeKind::kNeox ? GGML_ROPE_TYPE_NEOX : GGML_ROPE_TYPE_NORMAL;
  return ggml_rope_ext(context(), x, positions, factors, spec.n_rot, mode, spec.n_ctx_orig, spec.freq_base,
                       spec.freq_scale, spec.ext_factor, spec.attn_factor, spec.beta_fast, spec.beta_slow);
}

Tensor StepGraph::attend(std::size_t layer, Tensor q, Tensor k, Tensor v, float scale, float softcap, Tensor sinks) {
  const std::size_t pool = cache_.pool_of_layer(layer);
  const KvLayerSpec& spec = cache_.spec(layer);
  const auto n_tokens = static_cast<int64_t>(shape_.n_tokens);
  const auto n_kv = static_cast<int64_t>(shape_.n_kv[pool]);
  const auto write = [&](Tensor cache, Tensor rows) {
    rows = ggml_reshape_2d(context(), ggml_is_contiguous(rows) ? rows : ggml_cont(context(), rows), cache->ne[0],
                           n_tokens);
    // The write must come before the reads below; they see it through the cache tensor itself, not through this node.
    graph_.compute(ggml_set_rows(context(), cache, rows, pools_[pool].cells));
  };
  write(cache_.k(layer), k);
  write(cache_.v(layer), v);

  const auto read = [&](Tensor cache, int64_t head_dim) {
    Tensor view = ggml_view_3d(context(), cache, head_dim, spec.n_kv_head, n_kv, ggml_row_size(cache->type, head_dim),
                               cache->nb[1], 0);
    return ggml_permute(context(), view, 0, 2, 1, 3);  // [head_dim, n_kv, n_kv_head]
  };
  Tensor keys = read(cache_.k(layer), spec.head_dim_k);
  Tensor values = read(cache_.v(layer), spec.head_dim_v);
  Tensor mask = trims() ? pools_[pool].output_mask : pools_[pool].mask;
  q = ggml_permute(context(), q, 0, 2, 1, 3);  // [head_dim, n_queries, n_head]
  return flash_attention_ ? attend_flash(q, keys, values, mask, scale, softcap, sinks)
                          : attend_exact(q, keys, values, mask, scale, softcap, sinks);
}

Tensor StepGraph::attend_flash(Tensor q, Tensor k, Tensor v, Tensor mask, float scale, float softcap, Tensor sinks) {
  Tensor out = ggml_flash_attn_ext(context(), q, k, v, mask, scale, 0.0f, softcap);  // [head_dim_v, n_head, n_queries]
  ggml_flash_attn_ext_add_sinks(out, sinks);
  ggml_prec_set_acc(out, GGML_PREC_F32);
  return ggml_reshape_2d(context(), out, out->ne[0] * out->ne[1], out->ne[2]);
}

Tensor StepGraph::attend_exact(Tensor q, Tensor k, Tensor v, Tensor mask, float scale, float softcap, Tensor sinks) {
  Tensor scores = ggml_mul_mat(context(), k, q);  // [n_kv, n_queries, n_head]
  ggml_prec_set_acc(scores, GGML_PREC_F32);
  if (softcap != 0.0f) {
    scores = ggml_scale(context(), ggml_tanh(context(), ggml_scale(context(), scores, scale / softcap)), softcap);
    scale = 1.0f;
  }
  scores = ggml_soft_max_ext(context(), scores, mask, scale, 0.0f);
  ggml_soft_max_add_sinks(scores, sinks);
  Tensor columns = ggml_cont(context(), ggml_transpose(context(), v));  // [n_kv, head_dim_v, n_kv_head]
  Tensor out = ggml_mul_mat(context(), columns, scores);                // [head_dim_v, n_queries, n_head]
  out = ggml_cont(context(), ggml_permute(context(), out, 0, 2, 1, 3));
  return ggml_reshape_2d(context(), out, out->ne[0] * out->ne[1], out->ne[2]);
}

}  // namespace hocket
