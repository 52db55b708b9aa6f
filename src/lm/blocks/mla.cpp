#include "lm/blocks/mla.h"

#include <fmt/format.h>

#include <cmath>

namespace hocket {

namespace {
constexpr int64_t kMaxRank = 1 << 16;
constexpr int64_t kMaxHeadDim = 1 << 14;
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
  TRY_ASSIGN(const int64_t head_dim_k, metadata.integer(hp.key("attention.key_length_mla"), 2, kMaxHeadDim));
  TRY_ASSIGN(spec.head_dim_v, metadata.integer(hp.key("attention.value_length_mla"), 1, kMaxHeadDim));
  spec.head_dim_rope = hp.rope.n_rot;
  spec.head_dim_nope = head_dim_k - spec.head_dim_rope;
  if (spec.head_dim_nope < 1)
    return Error(ErrorCode::kBadModel,
                 fmt::format("{} rotated dimensions leave nothing of keys of {}", spec.head_dim_rope, head_dim_k),
                 hp.key("attention.key_length_mla"));
  if (hp.head_dim_k != spec.n_kv_latent + spec.head_dim_rope)
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
  mla.k_b_ = weights.heads(prefix + "attn_k_b.weight", {spec.head_dim_nope, spec.n_kv_latent, spec.n_head});
  mla.v_b_ = weights.heads(prefix + "attn_v_b.weight", {spec.n_kv_latent, spec.head_dim_v, spec.n_head});
  if (spec.head_gate) mla.gate_ = Linear::make(weights, prefix + "attn_gate", spec.n_embd, spec.n_head);
  mla.output_ = Linear::make(weights, prefix + "attn_output", spec.n_head * spec.head_dim_v, spec.n_embd);
  return mla;
}

Tensor Mla::query_latent(StepGraph& g, Tensor h) const {
  return q_a_.weight ? q_norm_.run(g, q_a_.run(g, h)) : h;
}

Tensor Mla::queries(StepGraph& g, Tensor latent) const {
  ggml_context* c = g.context();
  const int64_t head_dim = spec_.head_dim_nope + spec_.head_dim_rope, n = latent->ne[1];
  Tensor q = q_b_.weight ? q_b_.run(g, latent) : q_.run(g, latent);  // [head_dim · n_head, n]
  const auto part = [&](int64_t first, int64_t dim) {
    return ggml_view_3d(c, q, dim, spec_.n_head, n, ggml_row_size(q->type, head_dim), q->nb[1],
                        ggml_row_size(q->type, first));
  };
  Tensor nope = ggml_permute(c, part(0, spec_.head_dim_nope), 0, 2, 1, 3);  // [head_dim_nope, n, n_head]
  Tensor rotated = g.rope(part(spec_.head_dim_nope, spec_.head_dim_rope), g.query_positions(), spec_.rope, nullptr);
  Tensor absorbed = ggml_permute(c, matmul(g.graph(), k_b_, nope), 0, 2, 1, 3);  // [n_kv_latent, n_head, n]
  return ggml_concat(c, absorbed, rotated, 0);
}

Tensor Mla::rows(StepGraph& g, Tensor h) const {
  ggml_context* c = g.context();
  Tensor kv = kv_a_.run(g, h);
  const int64_t n = h->ne[1];
  Tensor latent = ggml_view_3d(c, kv, spec_.n_kv_latent, 1, n, kv->nb[1], kv->nb[1], 0);
  Tensor key =
      ggml_view_3d(c, kv, spec_.head_dim_rope, 1, n, kv->nb[1], kv->nb[1], ggml_row_size(kv->type, spec_.n_kv_latent));
  return ggml_concat(c, kv_norm_.run(g, latent), g.rope(key, g.positions(), spec_.rope, nullptr), 0);
}

Tensor Mla::run(StepGraph& g, std::size_t layer, Tensor h, Tensor latent, Tensor mask) const {
  ggml_context* c = g.context();
  Tensor o = g.attend(layer, queries(g, latent), rows(g, h), nullptr, {.scale = spec_.scale, .mask = mask});
  const int64_t n = o->ne[1];
  o = ggml_permute(c, ggml_reshape_3d(c, o, spec_.n_kv_latent, spec_.n_head, n), 0, 2, 1, 3);
  o = ggml_cont(c, ggml_permute(c, matmul(g.graph(), v_b_, o), 0, 2, 1, 3));  // [head_dim_v, n_head, n]
  if (gate_.weight) {
    Tensor gate = ggml_sigmoid(c, gate_.run(g, g.query_rows(h)));  // [n_head, n]
    o = ggml_mul(c, o, ggml_reshape_3d(c, gate, 1, spec_.n_head, n));
  }
  return output_.run(g, ggml_reshape_2d(c, o, spec_.head_dim_v * spec_.n_head, n));
}

}  // namespace hocket
