// lm/blocks/mlp.h: gated feed-forward: down( act(gate · h) ⊙ (up · h) ).
#pragma once

#include <string_view>

#include "lm/blocks/activation.h"
#include "lm/blocks/linear.h"

namespace hocket {

struct MlpSpec {
  int64_t n_embd = 0;
  int64_t n_ff = 0;
  GatedActivation activation = {};
  Bias bias = Bias::kNone;
  bool fused = false;     // ffn_up holds gate and up: [n_embd, 2 · n_ff], gate rows first
  bool f32_sums = false;  // of the down product
};

class GatedMlp {
 public:
  // Takes `prefix`ffn_gate`suffix`, ffn_up, ffn_down; the suffix is "" or "_shexp".
  static GatedMlp make(WeightSet& weights, const std::string& prefix, const MlpSpec& spec,
                       std::string_view suffix = {});
  // The same for the settings that most families have.
  static GatedMlp make(WeightSet& weights, const std::string& prefix, int64_t n_embd, int64_t n_ff,
                       Activation activation, Bias bias = Bias::kNone, bool fused = false);
  // h [n_embd, n_tokens] → [n_embd, n_tokens].
  Tensor run(StepGraph& g, Tensor h) const;

 private:
  Linear gate_, up_, down_;  // gate_ has no weight when it is fused into up_
  GatedActivation activation_;
};

}  // namespace hocket
