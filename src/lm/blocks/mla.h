// lm/blocks/mla.h: multi-head latent attention.
//
// Keys and values of all heads are products of one latent c of each token; the cache keeps [c ; k_rope] only, for all
// query heads the same. Two forms give the same attention but for rounding:
//
// absorbed  the key product moves to the query, q_abs = K_bᵀ q, and the value product behind the attention, o = V_b
//           (softmax(q · row) c). Nothing is made of the cells, but scores and sums run over the width of the latent.
// plain     K_b c and V_b c of every cell that the step sees, some heads at a time, then ordinary attention over the
//           narrower heads. Cheaper from some tens of queries in a step on.
//
// Which one a step takes depends on its number of queries and on the size of the cache, never on what the cache holds.
//
// Files from before that cache was invented (no attention.key_length_mla) have one product, attn_kv_b, and the cache
// keeps every head's key and value.
//
// Source   language-models.md §3.9; DeepSeek-V2, arXiv 2405.04434 §2.1.
#pragma once

#include "lm/blocks/linear.h"
#include "lm/blocks/norm.h"
#include "lm/blocks/temperature.h"
#include "lm/hparams.h"

namespace hocket {

struct MlaSpec {
  int64_t n_embd = 0;
  int64_t n_head = 0;
  int64_t n_q_latent = 0;   // rank of the query's own latent, 0: none
  int64_t n_kv_latent = 0;  // of c
  int64_t head_dim_nope = 0, head_dim_rope = 0, head_dim_v = 0;
  float eps = 1e-5f;
  RopeSpec rope;  // over head_dim_rope numbers; kNone leaves them unrotated
  float scale = 1.0f;
  AttentionTemperature temperature;
  bool head_gate = false;  // attn_gate: σ of one number a head multiplies its output
  // Most bytes that keys and values of a group of heads may take in the plain form when the cache is full; 0: always
  // the absorbed form.
  int64_t plain_bytes = 256 << 20;
  bool caches_heads = false;  // attn_kv_b; keys and values of the heads are cached

  // Reads attention.{q,kv}_lora_rank, key_length_mla, value_length_mla, temperature_scale, and the YaRN correction of
  // scale and amplitude.
  static Result<MlaSpec> read(const HParams& hp, const Metadata& metadata);
  KvLayerSpec memory() const {
    if (caches_heads)
      return {.n_kv_head = n_head, .head_dim_k = head_dim_nope + head_dim_rope, .head_dim_v = head_dim_v};
    return {.n_kv_head = 1, .head_dim_k = n_kv_latent + head_dim_rope, .n_latent = n_kv_latent};
  }
};

class Mla {
 public:
  // Takes `prefix`attn_q or attn_q_a, attn_q_a_norm, attn_q_b; attn_kv_a_mqa, attn_kv_a_norm, attn_k_b and attn_v_b
  // or attn_kv_b, attn_gate, attn_output.
  static Mla make(WeightSet& weights, const std::string& prefix, const MlaSpec& spec);

  // The query's latent, or h where there is none: what run() and an indexer start from. → [n_q_latent, n].
  Tensor query_latent(StepGraph& g, Tensor h) const;
  // h [n_embd, n_tokens], normalised; latent: query_latent() of the wanted rows; mask: nullptr for the layer's own.
  // → [n_embd, n_queries].
  Tensor run(StepGraph& g, std::size_t layer, Tensor h, Tensor latent, Tensor mask = nullptr) const;
  Tensor run(StepGraph& g, std::size_t layer, Tensor h) const {
    return run(g, layer, h, query_latent(g, g.query_rows(h)));
  }

 private:
  struct Query {
    Tensor nope = nullptr;     // [head_dim_nope, n_head, n_queries]
    Tensor rotated = nullptr;  // [head_dim_rope, n_head, n_queries]
  };
  struct Row {
    Tensor latent = nullptr;   // [n_kv_latent, 1, n_tokens]
    Tensor rotated = nullptr;  // [head_dim_rope, 1, n_tokens]
  };
  Query query(StepGraph& g, Tensor latent) const;
  Row row(StepGraph& g, Tensor h) const;
  // → [head_dim_v · n_head, n_queries].
  Tensor run_absorbed(StepGraph& g, std::size_t layer, const Query& q, const Row& row, Tensor mask) const;
  Tensor run_plain(StepGraph& g, std::size_t layer, const Query& q, const Row& row, Tensor mask,
                   int64_t n_group_heads) const;
  Tensor run_cached_heads(StepGraph& g, std::size_t layer, const Query& q, const Row& row, Tensor mask) const;
  // How many heads' keys and values the plain form makes at a time; 0: the absorbed form is to be taken.
  int64_t plain_heads(const StepGraph& g, int64_t n_queries) const;

  MlaSpec spec_;
  Linear q_, q_a_, q_b_, kv_a_, gate_, output_;
  RmsNorm q_norm_, kv_norm_;
  Tensor k_b_ = nullptr;  // [head_dim_nope, n_kv_latent, n_head]
  Tensor v_b_ = nullptr;  // [n_kv_latent, head_dim_v, n_head]
  Linear kv_b_;           // n_kv_latent → [head_dim_nope + head_dim_v, n_head]
};

}  // namespace hocket
