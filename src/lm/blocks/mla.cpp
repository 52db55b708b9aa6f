#include "lm/blocks/mla.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hocket {

namespace {
constexpr int64_t kMaxRank = 1 << 16;
constexpr int64_t kMaxHeadDim = 1 << 14;

// The plain form: fewest queries for which it is taken, and most groups of heads.
constexpr int64_t kPlainQueries = 64;
constexpr int64_t kPlainGroups = 8;
}  // namespace

Result<MlaSpec> MlaSpec::read(const HParams& hp, const Metadata& metadata) {
  MlaSpec spec;
  spec.n_embd = hp.n_embd;
  spec.eps = hp.rms_eps;
  for (std::size_t i = 0; i < hp.n_head.size(); ++i) {
    if (hp.n_head[i] < 1 || (i > 0 && hp.n_head[i] != hp.n_head[0]))
      return Error(ErrorCode::kBadModel, "latent attention needs the same number of heads, at least one, in all blocks",
                   hp.key("attention.head_count"));
  }
  spec.n_head = hp.n_head[0];
  TRY_ASSIGN(spec.n_q_latent, metadata.integer_or(hp.key("attention.q_lora_rank"), 0, 0, kMaxRank));
  TRY_ASSIGN(spec.n_kv_latent, metadata.integer(hp.key("attention.kv_lora_rank"), 1, kMaxRank));
  spec.caches_heads = !metadata.has(hp.key("attention.key_length_mla"));
  int64_t head_dim_k = hp.head_dim_k;
  spec.head_dim_v = hp.head_dim_v;
  if (!spec.caches_heads) {
    TRY_ASSIGN(head_dim_k, metadata.integer(hp.key("attention.key_length_mla"), 2, kMaxHeadDim));
    TRY_ASSIGN(spec.head_dim_v, metadata.integer(hp.key("attention.value_length_mla"), 1, kMaxHeadDim));
  }
  spec.head_dim_rope = hp.rope.n_rot;
  spec.head_dim_nope = head_dim_k - spec.head_dim_rope;
  if (spec.head_dim_nope < 1)
    return Error(ErrorCode::kBadModel,
                 fmt::format("{} rotated dimensions leave nothing of keys of {}", spec.head_dim_rope, head_dim_k),
                 hp.key(spec.caches_heads ? "attention.key_length" : "attention.key_length_mla"));
  if (!spec.caches_heads && hp.head_dim_k != spec.n_kv_latent + spec.head_dim_rope)
    return Error(ErrorCode::kBadModel,
                 fmt::format("{} is not the latent of {} and {} rotated dimensions", hp.head_dim_k, spec.n_kv_latent,
                             spec.head_dim_rope),
                 hp.key("attention.key_length"));

  spec.rope = hp.rope;
  spec.rope.kind = RopeKind::kNorm;
  double scale = 1.0 / std::sqrt(static_cast<double>(head_dim_k));
  if (hp.rope.ext_factor != 0.0f) {
    // YaRN: the amplitude belongs into the scale of the scores, squared; ggml's own is taken back.
    const double log_factor = std::log(1.0 / static_cast<double>(hp.rope.freq_scale));
    TRY_ASSIGN(const double multiplier, metadata.number_or(hp.key("rope.scaling.yarn_log_multiplier"), 0.0));
    const double amplitude = 1.0 + multiplier * log_factor;
    if (!(std::abs(amplitude) < 1e6))
      return Error(ErrorCode::kBadModel, fmt::format("{} is out of range", multiplier),
                   hp.key("rope.scaling.yarn_log_multiplier"));
    scale *= amplitude * amplitude;
    spec.rope.attn_factor = static_cast<float>(hp.rope.attn_factor / (1.0 + 0.1 * log_factor));
  }
  spec.scale = static_cast<float>(scale);
  TRY_ASSIGN(spec.temperature, AttentionTemperature::read(hp, metadata));
  return spec;
}

Mla Mla::make(WeightSet& weights, const std::string& prefix, const MlaSpec& spec) {
  const int64_t n_q = spec.n_head * (spec.head_dim_nope + spec.head_dim_rope);
  Mla mla;
  mla.spec_ = spec;
  if (spec.n_q_latent > 0) {
    mla.q_a_ = Linear::make(weights, prefix + "attn_q_a", spec.n_embd, spec.n_q_latent);
    mla.q_norm_ = RmsNorm::make(weights, prefix + "attn_q_a_norm", spec.n_q_latent, spec.eps);
    mla.q_b_ = Linear::make(weights, prefix + "attn_q_b", spec.n_q_latent, n_q);
  } else {
    mla.q_ = Linear::make(weights, prefix + "attn_q", spec.n_embd, n_q);
  }
  mla.kv_a_ = Linear::make(weights, prefix + "attn_kv_a_mqa", spec.n_embd, spec.n_kv_latent + spec.head_dim_rope);
  mla.kv_norm_ = RmsNorm::make(weights, prefix + "attn_kv_a_norm", spec.n_kv_latent, spec.eps);
  if (spec.caches_heads) {
    mla.kv_b_ = Linear::make(weights, prefix + "attn_kv_b", spec.n_kv_latent,
                             spec.n_head * (spec.head_dim_nope + spec.head_dim_v));
  } else {
    mla.k_b_ = weights.heads(prefix + "attn_k_b.weight", {spec.head_dim_nope, spec.n_kv_latent, spec.n_head});
    mla.v_b_ = weights.heads(prefix + "attn_v_b.weight", {spec.n_kv_latent, spec.head_dim_v, spec.n_head});
  }
  if (spec.head_gate) mla.gate_ = Linear::make(weights, prefix + "attn_gate", spec.n_embd, spec.n_head);
  mla.output_ = Linear::make(weights, prefix + "attn_output", spec.n_head * spec.head_dim_v, spec.n_embd);
  return mla;
}

Tensor Mla::query_latent(StepGraph& g, Tensor h) const {
  return q_a_.weight ? q_norm_.run(g, q_a_.run(g, h)) : h;
}

Mla::Query Mla::query(StepGraph& g, Tensor latent) const {
  const int64_t head_dim = spec_.head_dim_nope + spec_.head_dim_rope, n = latent->ne[1];
  Tensor q = q_b_.weight ? q_b_.run(g, latent) : q_.run(g, latent);  // [head_dim · n_head, n]
  const auto part = [&](int64_t first, int64_t dim) {
    return ggml_view_3d(g.context(), q, dim, spec_.n_head, n, ggml_row_size(q->type, head_dim), q->nb[1],
                        ggml_row_size(q->type, first));
  };
  Tensor rotated = g.rope(part(spec_.head_dim_nope, spec_.head_dim_rope), g.query_positions(), spec_.rope, nullptr);
  return {spec_.temperature.run(g, part(0, spec_.head_dim_nope)), spec_.temperature.run(g, rotated)};
}

Mla::Row Mla::row(StepGraph& g, Tensor h) const {
  ggml_context* c = g.context();
  Tensor kv = kv_a_.run(g, h);
  const int64_t n = h->ne[1];
  Tensor latent = ggml_view_3d(c, kv, spec_.n_kv_latent, 1, n, kv->nb[1], kv->nb[1], 0);
  Tensor key =
      ggml_view_3d(c, kv, spec_.head_dim_rope, 1, n, kv->nb[1], kv->nb[1], ggml_row_size(kv->type, spec_.n_kv_latent));
  return {kv_norm_.run(g, latent), g.rope(key, g.positions(), spec_.rope, nullptr)};
}

Tensor Mla::run_absorbed(StepGraph& g, std::size_t layer, const Query& q, const Row& row, Tensor mask) const {
  ggml_context* c = g.context();
  Tensor nope = ggml_permute(c, q.nope, 0, 2, 1, 3);                             // [head_dim_nope, n, n_head]
  Tensor absorbed = ggml_permute(c, matmul(g.graph(), k_b_, nope), 0, 2, 1, 3);  // [n_kv_latent, n_head, n]
  Tensor o = g.attend(layer, ggml_concat(c, absorbed, q.rotated, 0), ggml_concat(c, row.latent, row.rotated, 0),
                      nullptr, {.scale = spec_.scale, .mask = mask});
  const int64_t n = o->ne[1];
  o = ggml_permute(c, ggml_reshape_3d(c, o, spec_.n_kv_latent, spec_.n_head, n), 0, 2, 1, 3);
  o = ggml_cont(c, ggml_permute(c, matmul(g.graph(), v_b_, o), 0, 2, 1, 3));  // [head_dim_v, n_head, n]
  return ggml_reshape_2d(c, o, spec_.head_dim_v * spec_.n_head, n);
}

Tensor Mla::run_plain(StepGraph& g, std::size_t layer, const Query& q, const Row& row, Tensor mask,
                      int64_t n_group_heads) const {
  ggml_context* c = g.context();
  const int64_t nope = spec_.head_dim_nope, n_latent = spec_.n_kv_latent, n_rope = spec_.head_dim_rope;
  const ggml_type type = g.attention_type();
  Tensor rows = g.latent_rows(layer, ggml_concat(c, row.latent, row.rotated, 0));
  const int64_t n_kv = rows->ne[1];
  rows = ggml_cast(c, rows, GGML_TYPE_F32);
  Tensor latents = ggml_cont(c, ggml_view_2d(c, rows, n_latent, n_kv, rows->nb[1], 0));
  Tensor rotated =
      ggml_view_3d(c, rows, n_rope, 1, n_kv, rows->nb[1], rows->nb[1], ggml_row_size(rows->type, n_latent));
  Tensor queries = ggml_concat(c, q.nope, q.rotated, 0);  // [head_dim, n_head, n]

  // `heads` of a product with all latents: of_heads [n_latent, dim, n] → [dim, n_kv, n].
  const auto expand = [&](Tensor of_heads, int64_t dim, int64_t n) {
    of_heads = ggml_reshape_2d(c, of_heads, n_latent, dim * n);
    return ggml_reshape_3d(c, matmul(g.graph(), of_heads, latents), dim, n, n_kv);
  };
  Tensor all = nullptr;
  for (int64_t first = 0; first < spec_.n_head; first += n_group_heads) {
    const int64_t n = std::min(n_group_heads, spec_.n_head - first);
    const auto group = [&](Tensor w) {
      return ggml_view_3d(c, w, w->ne[0], w->ne[1], n, w->nb[1], w->nb[2], static_cast<std::size_t>(first) * w->nb[2]);
    };
    Tensor k_b = ggml_cast(c, group(k_b_), GGML_TYPE_F32);
    k_b = ggml_cont(c, ggml_transpose(c, k_b));  // [n_latent, head_dim_nope, n]
    Tensor keys = ggml_concat(c, expand(k_b, nope, n), ggml_repeat_4d(c, rotated, n_rope, n, n_kv, 1), 0);
    Tensor values = expand(group(v_b_), spec_.head_dim_v, n);
    if (type != GGML_TYPE_F32) {
      keys = ggml_cast(c, keys, type);
      values = ggml_cast(c, values, type);
    }
    Tensor wanted = ggml_view_3d(c, queries, queries->ne[0], n, queries->ne[2], queries->nb[1], queries->nb[2],
                                 static_cast<std::size_t>(first) * queries->nb[1]);
    Tensor o = g.attend_to(wanted, ggml_permute(c, keys, 0, 2, 1, 3), ggml_permute(c, values, 0, 2, 1, 3),
                           {.scale = spec_.scale, .mask = mask ? mask : g.query_mask(layer)});
    all = all ? ggml_concat(c, all, o, 0) : o;
  }
  return all;
}

Tensor Mla::run_cached_heads(StepGraph& g, std::size_t layer, const Query& q, const Row& row, Tensor mask) const {
  ggml_context* c = g.context();
  const int64_t nope = spec_.head_dim_nope, dim = nope + spec_.head_dim_v, n = row.latent->ne[2];
  Tensor kv = kv_b_.run(g, ggml_reshape_2d(c, row.latent, spec_.n_kv_latent, n));  // [dim · n_head, n]
  const auto part = [&](int64_t first, int64_t width) {
    return ggml_view_3d(c, kv, width, spec_.n_head, n, ggml_row_size(kv->type, dim), kv->nb[1],
                        ggml_row_size(kv->type, first));
  };
  Tensor rotated = ggml_repeat_4d(c, row.rotated, spec_.head_dim_rope, spec_.n_head, n, 1);
  return g.attend(layer, ggml_concat(c, q.nope, q.rotated, 0), ggml_concat(c, part(0, nope), rotated, 0),
                  part(nope, spec_.head_dim_v), {.scale = spec_.scale, .mask = mask});
}

int64_t Mla::plain_heads(const StepGraph& g, int64_t n_queries) const {
  if (n_queries < kPlainQueries) return 0;
  // At once there are the F32 keys, their copy in the type of attention, and the values.
  const int64_t numbers = 2 * (spec_.head_dim_nope + spec_.head_dim_rope) + spec_.head_dim_v;
  const int64_t head_bytes = numbers * static_cast<int64_t>(sizeof(float) * g.n_cells());
  const int64_t n = std::min(spec_.plain_bytes / head_bytes, spec_.n_head);
  return n * kPlainGroups >= spec_.n_head ? n : 0;
}

Tensor Mla::run(StepGraph& g, std::size_t layer, Tensor h, Tensor latent, Tensor mask) const {
  ggml_context* c = g.context();
  const Query q = query(g, latent);
  const Row of_tokens = row(g, h);
  Tensor o = nullptr;  // [head_dim_v · n_head, n]
  if (spec_.caches_heads) {
    o = run_cached_heads(g, layer, q, of_tokens, mask);
  } else if (const int64_t n_group_heads = plain_heads(g, latent->ne[1])) {
    o = run_plain(g, layer, q, of_tokens, mask, n_group_heads);
  } else {
    o = run_absorbed(g, layer, q, of_tokens, mask);
  }
  if (gate_.weight) {
    const int64_t n = o->ne[1];
    Tensor gate = ggml_sigmoid(c, gate_.run(g, g.query_rows(h)));  // [n_head, n]
    o = ggml_mul(c, ggml_reshape_3d(c, o, spec_.head_dim_v, spec_.n_head, n),
                 ggml_reshape_3d(c, gate, 1, spec_.n_head, n));
    o = ggml_reshape_2d(c, o, spec_.head_dim_v * spec_.n_head, n);
  }
  return output_.run(g, o);
}

}  // namespace hocket
