// lm/blocks/mla.h: multi-head latent attention.
//
// Keys and values of all heads are products of one latent c of each token; the cache keeps [c ; k_rope] only. Computed
// in the absorbed form: the key product moves to the query, q_abs = K_bᵀ q, and the value product behind the attention,
// o = V_b (softmax(q · row) c). A head of the cache is as wide as latent and rope together, for all query heads the
// same.
//
// Source   language-models.md §3.9; DeepSeek-V2, arXiv 2405.04434 §2.1.
#pragma once

#include "lm/blocks/linear.h"
#include "lm/blocks/norm.h"
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
  bool head_gate = false;  // attn_gate: σ of one number a head multiplies its output

  // Reads attention.{q,kv}_lora_rank, key_length_mla, value_length_mla, and the YaRN correction of scale and amplitude.
  static Result<MlaSpec> read(const HParams& hp, const Metadata& metadata);
  KvLayerSpec memory() const {
    return {.n_kv_head = 1, .head_dim_k = n_kv_latent + head_dim_rope, .n_latent = n_kv_latent};
  }
};

class Mla {
 public:
  // Takes `prefix`attn_q or attn_q_a, attn_q_a_norm, attn_q_b; attn_kv_a_mqa, attn_kv_a_norm, attn_k_b, attn_v_b,
  // attn_gate, attn_output.
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
  Tensor queries(StepGraph& g, Tensor latent) const;  // → [n_kv_latent + head_dim_rope, n_head, n_queries]
  Tensor rows(StepGraph& g, Tensor h) const;          // → [n_kv_latent + head_dim_rope, 1, n_tokens]

  MlaSpec spec_;
  Linear q_, q_a_, q_b_, kv_a_, gate_, output_;
  RmsNorm q_norm_, kv_norm_;
  Tensor k_b_ = nullptr;  // [head_dim_nope, n_kv_latent, n_head]
  Tensor v_b_ = nullptr;  // [n_kv_latent, head_dim_v, n_head]
};

}  // namespace hocket
