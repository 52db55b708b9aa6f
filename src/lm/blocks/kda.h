// lm/blocks/kda.h: Kimi Delta Attention: a delta rule whose decay is one of each key channel.
//
// Queries, keys and values pass a short convolution and SiLU; queries and keys are brought to norm 1; the output of
// each head is normalised and gated. No positions. Two ways of making the decay from f = f_a · h (+ dt):
//   bounded:   g = L · σ(A · f), L < 0 the lower bound, A > 0 of each head    (Ling 3)
//   softplus:  g = A · softplus(f), A < 0                                     (Kimi Linear; f and gate of low rank)
//
// Source   language-models.md §§3.8, 3.10; "Kimi Linear", arXiv 2510.26692.
#pragma once

#include "lm/blocks/delta_rule.h"
#include "lm/blocks/linear.h"
#include "lm/blocks/norm.h"
#include "lm/blocks/short_conv.h"
#include "lm/hparams.h"

namespace hocket {

struct KdaSpec {
  int64_t n_embd = 0;
  int64_t n_head = 0;
  int64_t head_dim = 0;
  int64_t kernel = 4;  // of the convolutions
  float eps = 1e-5f;
  float lower_bound = 0.0f;  // of the bounded decay; 0: softplus
  bool low_rank = false;     // decay and gate through head_dim numbers

  // Reads kda.* and ssm.conv_kernel.
  static Result<KdaSpec> read(const HParams& hp, const Metadata& metadata);
  RecurrentLayerSpec memory() const {
    return {conv_state_size(kernel, 3 * n_head * head_dim), delta_state_size(head_dim, n_head)};
  }
};

class Kda {
 public:
  // Takes `prefix`attn_q, attn_k, attn_v, ssm_conv1d_{q,k,v}, ssm_f_a (ssm_f_b), ssm_dt.bias, ssm_a, ssm_beta, ssm_g_a
  // (ssm_g_b), ssm_norm, attn_output.
  static Kda make(WeightSet& weights, const std::string& prefix, const KdaSpec& spec);
  // h [n_embd, n_tokens], normalised → [n_embd, n_queries].
  Tensor run(StepGraph& g, std::size_t layer, Tensor h) const;

 private:
  // A projection, through a narrow one where there are two.
  struct LowRank {
    Linear first, second;
    static LowRank make(WeightSet& weights, const std::string& name, const KdaSpec& spec);
    Tensor run(StepGraph& g, Tensor h) const;
  };
  Tensor log_decay(StepGraph& g, Tensor h) const;  // → [head_dim, n_head, n_tokens]

  KdaSpec spec_;
  Linear q_, k_, v_, beta_, output_;
  std::vector<ShortConv> convs_;
  LowRank decay_, gate_;
  Tensor dt_ = nullptr;  // [head_dim · n_head]
  Tensor a_ = nullptr;   // [1, n_head]
  RmsNorm norm_;         // [head_dim]
};

}  // namespace hocket
