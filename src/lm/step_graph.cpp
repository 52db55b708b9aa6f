#include "lm/step_graph.h"

#include "base/check.h"
#include "compute/cell_attention.h"
#include "compute/delta_rules.h"

namespace hocket {

StepGraph::StepGraph(const StepShape& shape, const ModelMemory& memory, const StepGraphOptions& options)
    : shape_(shape), options_(options), graph_(options.max_nodes), memory_(memory) {
  const auto n_tokens = static_cast<int64_t>(shape.n_tokens);
  const auto n_outputs = static_cast<int64_t>(shape.n_outputs);
  tokens_ = graph_.input(GGML_TYPE_I32, {n_tokens}, "tokens");
  positions_ = graph_.input(GGML_TYPE_I32, {n_tokens}, "positions");
  if (options.n_activation > 0)
    activations_ = graph_.input(GGML_TYPE_F32, {options.n_activation, n_tokens}, "activations");
  const bool trim = n_outputs != n_tokens;
  if (trim) {
    output_rows_ = graph_.input(GGML_TYPE_I32, {n_outputs}, "output_rows");
    output_positions_ = graph_.input(GGML_TYPE_I32, {n_outputs}, "output_positions");
  }
  for (std::size_t p = 0; p < memory.kv().n_pools(); ++p) {
    const auto n_kv = static_cast<int64_t>(shape.n_kv[p]);
    PoolInputs inputs{};
    inputs.cells = graph_.input(GGML_TYPE_I64, {n_tokens}, "cells");
    inputs.order = graph_.input(GGML_TYPE_I32, {n_kv}, "cell_order");
    inputs.mask = graph_.input(GGML_TYPE_F16, {n_kv, n_tokens}, "mask");
    if (trim) inputs.output_mask = graph_.input(GGML_TYPE_F16, {n_kv, n_outputs}, "output_mask");
    pools_.push_back(inputs);
  }
  int64_t first = 0;
  for (const LaneShape& lanes : shape.lanes) {
    LaneGroup group;
    group.first_token = first;
    group.n_tokens = static_cast<int64_t>(lanes.n_tokens);
    group.n_lanes = static_cast<int64_t>(lanes.n_lanes);
    group.n_written = static_cast<int64_t>(lanes.n_written);
    group.rows_in = graph_.input(GGML_TYPE_I32, {group.n_lanes}, "rows_in");
    group.rows_out = graph_.input(GGML_TYPE_I64, {group.n_lanes * group.n_written}, "rows_out");
    lane_groups_.push_back(group);
    first += group.n_tokens * group.n_lanes;
  }
}

void StepGraph::set_result(Tensor result) {
  result_ = result;
  graph_.output(result, "result");
}

void StepGraph::set_hidden(Tensor hidden) {
  hidden_ = hidden;
  graph_.output(hidden, "hidden");
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

// ---- attention

void StepGraph::write_rows(std::size_t layer, Tensor table, Tensor rows) {
  const std::size_t pool = memory_.kv().pool_of_layer(local(layer));
  rows = ggml_reshape_2d(context(), ggml_is_contiguous(rows) ? rows : ggml_cont(context(), rows), table->ne[0],
                         static_cast<int64_t>(shape_.n_tokens));
  // The write must come before later reads; they see it through the table itself, not through this node.
  graph_.compute(ggml_set_rows(context(), table, rows, pools_[pool].cells));
}

Tensor StepGraph::query_mask(std::size_t layer) const {
  const PoolInputs& pool = pools_[memory_.kv().pool_of_layer(local(layer))];
  return trims() ? pool.output_mask : pool.mask;
}

Tensor StepGraph::attend(std::size_t layer, Tensor q, Tensor k, Tensor v, const AttendOptions& options) {
  const KvCache& cache = memory_.kv();
  const KvLayerSpec& spec = cache.spec(local(layer));
  const auto n_kv = static_cast<int64_t>(shape_.n_kv[cache.pool_of_layer(local(layer))]);
  Tensor k_rows = cache.k(local(layer)), v_rows = cache.v(local(layer));
  if (k) write_rows(layer, k_rows, k);
  if (v) write_rows(layer, v_rows, v);

  // `head_dim` numbers of each head of a row: [head_dim, n_kv, n_kv_head].
  const auto read = [&](Tensor rows, int64_t head_dim) {
    Tensor view = ggml_view_3d(context(), rows, head_dim, spec.n_kv_head, n_kv, ggml_row_size(rows->type, head_dim),
                               rows->nb[1], 0);
    return ggml_permute(context(), view, 0, 2, 1, 3);
  };
  Tensor keys = read(k_rows, spec.head_dim_k);
  Tensor values = spec.n_latent > 0 ? read(k_rows, spec.n_latent) : read(v_rows, spec.head_dim_v);
  AttendOptions masked = options;
  if (!masked.mask) {
    masked.mask = query_mask(layer);
    masked.order = pools_[cache.pool_of_layer(local(layer))].order;
  }
  return attend_to(q, keys, values, masked);
}

Tensor StepGraph::attend_to(Tensor q, Tensor keys, Tensor values, const AttendOptions& options) {
  q = ggml_permute(context(), q, 0, 2, 1, 3);  // [head_dim, n_queries, n_head]
  return options_.flash_attention ? attend_flash(q, keys, values, options) : attend_exact(q, keys, values, options);
}

Tensor StepGraph::latent_rows(std::size_t layer, Tensor rows) {
  Tensor table = memory_.kv().k(local(layer));
  write_rows(layer, table, rows);
  const auto n_kv = static_cast<int64_t>(shape_.n_kv[memory_.kv().pool_of_layer(local(layer))]);
  return ggml_view_2d(context(), table, table->ne[0], n_kv, table->nb[1], 0);
}

Tensor StepGraph::attend_flash(Tensor q, Tensor k, Tensor v, const AttendOptions& options) {
  // [head_dim_v, n_head, n_queries]
  if (options_.kernels && options.mask->type == GGML_TYPE_F16 && CellAttentions::can_attend(q, k, v)) {
    // Without the order of the positions, that of the cells shows in the last bits.
    works_by_rows_ = works_by_rows_ && options.order != nullptr;
    Tensor out = graph_.cell_attentions().attend(context(), *options_.kernels, q, k, v, options.mask,
                                                 {options.scale, options.softcap, options.sinks, options.order});
    return ggml_reshape_2d(context(), out, out->ne[0] * out->ne[1], out->ne[2]);
  }
  works_by_rows_ = false;
  Tensor out = ggml_flash_attn_ext(context(), q, k, v, options.mask, options.scale, 0.0f, options.softcap);
  ggml_prec_set_acc(out, GGML_PREC_F32);
  if (options.sinks) ggml_flash_attn_ext_add_sinks(out, options.sinks);
  return ggml_reshape_2d(context(), out, out->ne[0] * out->ne[1], out->ne[2]);
}

Tensor StepGraph::attend_exact(Tensor q, Tensor k, Tensor v, const AttendOptions& options) {
  works_by_rows_ = false;
  Tensor scores = ggml_mul_mat(context(), k, q);  // [n_kv, n_queries, n_head]
  ggml_prec_set_acc(scores, GGML_PREC_F32);
  float scale = options.scale;
  if (const float cap = options.softcap; cap != 0.0f) {
    scores = ggml_scale(context(), ggml_tanh(context(), ggml_scale(context(), scores, scale / cap)), cap);
    scale = 1.0f;
  }
  scores = ggml_soft_max_ext(context(), scores, options.mask, scale, 0.0f);
  if (options.sinks) ggml_soft_max_add_sinks(scores, options.sinks);
  Tensor columns = ggml_cont(context(), ggml_transpose(context(), v));  // [n_kv, head_dim_v, n_kv_head]
  Tensor out = ggml_mul_mat(context(), columns, scores);                // [head_dim_v, n_queries, n_head]
  out = ggml_cont(context(), ggml_permute(context(), out, 0, 2, 1, 3));
  return ggml_reshape_2d(context(), out, out->ne[0] * out->ne[1], out->ne[2]);
}

Tensor StepGraph::index_keys(std::size_t layer, Tensor keys) {
  Tensor table = memory_.kv().index(local(layer));
  write_rows(layer, table, keys);
  const auto n_kv = static_cast<int64_t>(shape_.n_kv[memory_.kv().pool_of_layer(local(layer))]);
  return ggml_view_2d(context(), table, table->ne[0], n_kv, table->nb[1], 0);
}

// ---- recurrence

Tensor StepGraph::lanes_of(const LaneGroup& group, Tensor x) {
  return ggml_view_3d(context(), x, x->ne[0], group.n_tokens, group.n_lanes, x->nb[1],
                      x->nb[1] * static_cast<std::size_t>(group.n_tokens),
                      x->nb[1] * static_cast<std::size_t>(group.first_token));
}

Tensor StepGraph::join_lanes(const std::vector<Tensor>& parts) {
  Tensor all = nullptr;
  for (Tensor part : parts) {
    part = ggml_reshape_2d(context(), part, part->ne[0], part->ne[1] * part->ne[2]);
    all = all ? ggml_concat(context(), all, part, 1) : part;
  }
  return all;
}

Tensor StepGraph::conv_before(std::size_t layer, const LaneGroup& group) {
  return ggml_get_rows(context(), memory_.recurrent().conv(local(layer)), group.rows_in);
}

Tensor StepGraph::state_before(std::size_t layer, const LaneGroup& group) {
  return ggml_get_rows(context(), memory_.recurrent().state(local(layer)), group.rows_in);
}

void StepGraph::set_conv(std::size_t layer, const LaneGroup& group, Tensor rows) {
  graph_.compute(ggml_set_rows(context(), memory_.recurrent().conv(local(layer)), rows, group.rows_out));
}

void StepGraph::set_state(std::size_t layer, const LaneGroup& group, Tensor rows) {
  graph_.compute(ggml_set_rows(context(), memory_.recurrent().state(local(layer)), rows, group.rows_out));
}

Tensor StepGraph::delta_rule(Tensor q, Tensor k, Tensor v, Tensor gate, Tensor beta, Tensor before, int64_t n_written) {
  if (options_.kernels && DeltaRules::can_run(q, k, v, gate))
    return graph_.delta_rules().run(context(), *options_.kernels, q, k, v, gate, beta, before, n_written);
  works_by_rows_ = false;
  return ggml_gated_delta_net(context(), q, k, v, gate, beta, before, n_written);
}

}  // namespace hocket
