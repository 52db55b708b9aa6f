// lm/blocks/indexer.h: the lightning indexer of sparse attention: chooses the keys that each query attends to.
//
//   score(t, s) = Σ_i w_i(t) · relu( q_i(t) · k(s) ); a query sees the top_k keys of highest score among those before
//   it.
//
// Owns     nothing; index keys are in the layer's cache.
// Source   language-models.md §3.14; DeepSeek-V3.2, arXiv 2512.02556.
#pragma once

#include "lm/blocks/linear.h"
#include "lm/hparams.h"

namespace hocket {

struct IndexerSpec {
  int64_t n_embd = 0, n_q_latent = 0;
  int64_t n_head = 0;
  int64_t head_dim = 0;
  int64_t top_k = 0;
  RopeSpec rope;  // over the first n_rot numbers of queries and keys

  // Reads attention.indexer.*.
  static Result<IndexerSpec> read(const HParams& hp, const Metadata& metadata, int64_t n_q_latent);
};

class Indexer {
 public:
  // Takes `prefix`indexer.attn_q_b, indexer.attn_k, indexer.k_norm, indexer.proj.
  static Indexer make(WeightSet& weights, const std::string& prefix, const IndexerSpec& spec);
  // Stores the layer's index keys and chooses. h [n_embd, n_tokens]; latent [n_q_latent, n_queries] → F32
  // [n_kv, n_queries]: 0 where a query sees a key, -inf elsewhere; nullptr when it sees all that is before it.
  Tensor run(StepGraph& g, std::size_t layer, Tensor h, Tensor latent) const;

 private:
  IndexerSpec spec_;
  Linear q_, k_, weights_;
  Tensor k_norm_ = nullptr, k_norm_bias_ = nullptr;  // [head_dim]
};

}  // namespace hocket
