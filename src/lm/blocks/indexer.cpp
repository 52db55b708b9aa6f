#include "lm/blocks/indexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hocket {

namespace {
constexpr float kNormEps = 1e-6f;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxHeadDim = 1 << 14;
}  // namespace

Result<IndexerSpec> IndexerSpec::read(const HParams& hp, const Metadata& metadata, int64_t n_q_latent) {
  IndexerSpec spec;
  spec.n_embd = hp.n_embd;
  spec.n_q_latent = n_q_latent;
  spec.rope = hp.rope;
  spec.rope.kind = RopeKind::kNorm;
  TRY_ASSIGN(spec.n_head, metadata.integer(hp.key("attention.indexer.head_count"), 1, kMaxHeads));
  TRY_ASSIGN(spec.head_dim, metadata.integer(hp.key("attention.indexer.key_length"), 2, kMaxHeadDim));
  TRY_ASSIGN(spec.top_k, metadata.integer(hp.key("attention.indexer.top_k"), 1, std::numeric_limits<int32_t>::max()));
  if (spec.rope.n_rot > spec.head_dim)
    return Error(
        ErrorCode::kBadModel,
        fmt::format("{} rotated dimensions do not fit into indexer keys of {}", spec.rope.n_rot, spec.head_dim),
        hp.key("attention.indexer.key_length"));
  if (n_q_latent == 0)
    return Error(ErrorCode::kBadModel, "an indexer needs low-rank queries", hp.key("attention.q_lora_rank"));
  return spec;
}

Indexer Indexer::make(WeightSet& weights, const std::string& prefix, const IndexerSpec& spec) {
  const std::string p = prefix + "indexer.";
  Indexer indexer;
  indexer.spec_ = spec;
  indexer.q_ = Linear::make(weights, p + "attn_q_b", spec.n_q_latent, spec.n_head * spec.head_dim);
  indexer.k_ = Linear::make(weights, p + "attn_k", spec.n_embd, spec.head_dim);
  indexer.k_norm_ = weights.vector(p + "k_norm.weight", {spec.head_dim});
  indexer.k_norm_bias_ = weights.vector(p + "k_norm.bias", {spec.head_dim});
  indexer.weights_ = Linear::make(weights, p + "proj", spec.n_embd, spec.n_head);
  return indexer;
}

Tensor Indexer::run(StepGraph& g, std::size_t layer, Tensor h, Tensor latent) const {
  ggml_context* c = g.context();
  Tensor k = ggml_norm(c, k_.run(g, h), kNormEps);
  k = ggml_add(c, ggml_mul(c, k, k_norm_), k_norm_bias_);
  k = g.rope(ggml_reshape_3d(c, k, spec_.head_dim, 1, k->ne[1]), g.positions(), spec_.rope, nullptr);
  Tensor keys = g.index_keys(layer, k);  // [head_dim, n_kv]
  const int64_t n_kv = keys->ne[1], n = latent->ne[1];
  if (n_kv <= spec_.top_k) return nullptr;

  Tensor q = ggml_reshape_3d(c, q_.run(g, latent), spec_.head_dim, spec_.n_head, n);
  q = g.rope(q, g.query_positions(), spec_.rope, nullptr);
  const float scale = 1.0f / std::sqrt(static_cast<float>(spec_.n_head * spec_.head_dim));
  Tensor w = ggml_scale(c, weights_.run(g, g.query_rows(h)), scale);  // [n_head, n]
  Tensor mask = g.query_mask(layer);                                  // F16 [n_kv, n]
  keys = ggml_reshape_3d(c, keys, spec_.head_dim, 1, n_kv);
  Tensor scores = ggml_lightning_indexer(c, q, keys, w, mask);  // [n_kv, n]

  Tensor chosen = ggml_top_k(c, scores, static_cast<int>(spec_.top_k));  // I32 [top_k, n]
  Tensor none = ggml_fill(c, scores, -std::numeric_limits<float>::infinity());
  Tensor zeros = ggml_view_2d(c, scores, spec_.top_k, n, scores->nb[1], 0);
  zeros = ggml_fill(c, ggml_cont(c, zeros), 0.0f);
  Tensor seen =
      ggml_set_rows(c, ggml_reshape_3d(c, none, 1, n_kv, n), ggml_reshape_3d(c, zeros, 1, spec_.top_k, n), chosen);
  // Among the chosen there may be keys that the query must not see, when it has fewer than top_k before it.
  return ggml_add(c, ggml_reshape_2d(c, seen, n_kv, n), ggml_cast(c, mask, GGML_TYPE_F32));
}

}  // namespace hocket
