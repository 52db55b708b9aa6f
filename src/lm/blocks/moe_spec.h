// lm/blocks/moe_spec.h: the numbers of a mixture of experts, read from hyper-parameters and checked.
//
// Errors   MoeSpec::read(): kBadModel naming the key.
// Source   language-models.md §1.3, §3.0 "MoE, generic".
#pragma once

#include <optional>

#include "lm/blocks/activation.h"
#include "lm/blocks/linear.h"
#include "lm/hparams.h"

namespace hocket {

// How the router's logits become weights; the numbers are those of the key expert_gating_func.
enum class Gating {
  kSoftmax = 1,
  kSigmoid = 2,
  kSoftmaxOfSelected = 3,  // the logits choose, softmax over the chosen weighs
  kSqrtSoftplus = 4,
};

// What a family of models has that its files do not say.
struct MoeRules {
  Gating gating = Gating::kSoftmax;  // of files without expert_gating_func
  std::optional<bool> norm = {};     // fixed; otherwise expert_weights_norm, false where that is missing
  bool gated_shared = false;         // the shared expert's output is multiplied by σ(ffn_gate_inp_shexp · h)
  Activation activation = Activation::kSilu;
  Bias bias = Bias::kNone;  // of the router and of every expert's products
  bool f32_sums = false;    // of the down products
};

struct MoeSpec {
  int64_t n_embd = 0;
  int64_t n_ff = 0;         // of one expert
  int64_t n_ff_shared = 0;  // of all shared experts together; 0 = none
  int64_t n_expert = 0;
  int64_t n_used = 0;                     // experts of a token
  int64_t n_group = 1, n_group_used = 1;  // consecutive groups of equal size, of which a token uses some
  Gating gating = Gating::kSoftmax;
  bool norm = false;          // weights are divided by their sum
  float scale = 1.0f;         // and multiplied by this
  float clamp = 0.0f;         // λ of the experts' activation
  float clamp_shared = 0.0f;  // λ of the shared expert's
  bool gated_shared = false;
  Activation activation = Activation::kSilu;
  Bias bias = Bias::kNone;
  bool f32_sums = false;

  // The keys expert_*; n_ff stays 0 when the file gives no size of its own for experts. Only for hp.n_expert > 0.
  static Result<MoeSpec> read(const HParams& hp, const Metadata& metadata, const MoeRules& rules);
};

}  // namespace hocket
