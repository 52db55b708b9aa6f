// lm/blocks/mlp.h: gated feed-forward: down( act(gate · h) ⊙ (up · h) ).
#pragma once

#include "lm/blocks/linear.h"

namespace hocket {

enum class Activation { kSilu, kGelu };  // gelu: the tanh approximation

class GatedMlp {
 public:
  // Takes `prefix`ffn_gate, ffn_up, ffn_down; with `fused`, ffn_up holds gate and up: [n_embd, 2 · n_ff], gate rows
  // first.
  static GatedMlp make(WeightSet& weights, const std::string& prefix, int64_t n_embd, int64_t n_ff,
                       Activation activation, Bias bias = Bias::kNone, bool fused = false);
  // h [n_embd, n_tokens] → [n_embd, n_tokens].
  Tensor run(StepGraph& g, Tensor h) const;

 private:
  Linear gate_, up_, down_;  // gate_ has no weight when it is fused into up_
  Activation activation_ = Activation::kSilu;
};

}  // namespace hocket
