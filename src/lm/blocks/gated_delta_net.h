// lm/blocks/gated_delta_net.h: the recurrent layer of Qwen3-Next and Qwen3.5: a delta rule with one decay a head.
//
// Queries, keys and values come from one projection and pass one short convolution and SiLU; queries and keys are
// brought to norm 1; g = A · softplus(a + dt), A < 0; the output of each head is normalised and multiplied by SiLU of a
// gate.
//
// Source   language-models.md §3.5; Yang et al., arXiv 2412.06464.
#pragma once

#include "lm/blocks/delta_rule.h"
#include "lm/blocks/linear.h"
#include "lm/blocks/norm.h"
#include "lm/blocks/short_conv.h"
#include "lm/hparams.h"

namespace hocket {

// How value heads share key heads, and how beta and decay are stored.
enum class DeltaHeads {
  kTiled,    // value head h with key head h mod n_k_head; ssm_beta and ssm_alpha
  kGrouped,  // value head h with key head ⌊h / r⌋; ssm_ba has, for each key head, r of beta and then r of decay
};

struct GatedDeltaNetSpec {
  int64_t n_embd = 0;
  int64_t head_dim = 0;  // of keys and values
  int64_t n_k_head = 0, n_v_head = 0;
  int64_t kernel = 4;
  float eps = 1e-5f;
  DeltaHeads heads = DeltaHeads::kTiled;

  // Reads ssm.*.
  static Result<GatedDeltaNetSpec> read(const HParams& hp, const Metadata& metadata, DeltaHeads heads);
  int64_t n_channels() const { return head_dim * (2 * n_k_head + n_v_head); }  // of the convolution
  RecurrentLayerSpec memory() const {
    return {conv_state_size(kernel, n_channels()), delta_state_size(head_dim, n_v_head)};
  }
};

class GatedDeltaNet {
 public:
  // Takes `prefix`attn_qkv, attn_gate, ssm_conv1d, ssm_dt.bias, ssm_a, ssm_beta and ssm_alpha or ssm_ba, ssm_norm,
  // ssm_out.
  static GatedDeltaNet make(WeightSet& weights, const std::string& prefix, const GatedDeltaNetSpec& spec);
  // h [n_embd, n_tokens], normalised → [n_embd, n_queries].
  Tensor run(StepGraph& g, std::size_t layer, Tensor h) const;

 private:
  struct Gates {
    Tensor beta, decay;  // [n_v_head, n_tokens]
  };
  Gates gates(StepGraph& g, Tensor h) const;
  Tensor run_group(StepGraph& g, std::size_t layer, const LaneGroup& group, Tensor qkv, const Gates& gates) const;

  GatedDeltaNetSpec spec_;
  Linear qkv_, gate_, beta_, alpha_, beta_alpha_, output_;
  ShortConv conv_;
  Tensor dt_ = nullptr;  // [n_v_head]
  Tensor a_ = nullptr;   // [n_v_head]
  RmsNorm norm_;         // [head_dim]
};

}  // namespace hocket
