// lm/blocks/moe.h: mixture of experts: a router chooses, for each token, the few experts whose weighted outputs are
// added up; shared experts see every token.
//
// Whatever the weights hold, also not-a-number, a token's experts are different and exist.
//
// Cost     few nodes: one token's step through a layer is bound by them. The weighted sum over experts is one node.
// Source   language-models.md §1.8, §3.0 "MoE, generic".
#pragma once

#include "lm/blocks/mlp.h"
#include "lm/blocks/moe_spec.h"

namespace hocket {

// The same product of every expert, stacked.
struct ExpertStack {
  Tensor weight = nullptr;  // [n_in, n_out, n_expert]
  Tensor scale = nullptr;   // [n_expert] or nullptr: factor of each expert's product
  Tensor bias = nullptr;    // [n_out, n_expert] or nullptr
  bool f32_sums = false;

  // Takes `name`.weight, `name`.scale where the file has it and, as asked, `name`.bias.
  static ExpertStack make(WeightSet& weights, const std::string& name, int64_t n_in, int64_t n_out,
                          const MoeSpec& spec);
  // x [n_in, 1 or n_used, n_tokens], ids I32 [n_used, n_tokens] → [n_out, n_used, n_tokens].
  Tensor run(StepGraph& g, Tensor x, Tensor ids) const;
};

// Which experts a token uses, and with which weights.
struct Routing {
  Tensor ids;      // I32 [n_used, n_tokens], different for each token, in no order
  Tensor weights;  // [1, n_used, n_tokens]
};

class Moe {
 public:
  // Takes `prefix`ffn_gate_inp, exp_probs_b where the file has it, ffn_gate_exps and ffn_up_exps (or ffn_gate_up_exps),
  // ffn_down_exps, and of the shared experts ffn_gate_shexp, ffn_up_shexp, ffn_down_shexp, ffn_gate_inp_shexp.
  static Moe make(WeightSet& weights, const std::string& prefix, const MoeSpec& spec);
  // h [n_embd, n_tokens] → [n_embd, n_tokens]. router_input: what the router sees, when that is not h.
  Tensor run(StepGraph& g, Tensor h, Tensor router_input = nullptr) const;
  Routing route(StepGraph& g, Tensor h) const;

 private:
  Tensor limit_groups(StepGraph& g, Tensor scores) const;

  MoeSpec spec_;
  Linear router_;
  Tensor selection_bias_ = nullptr;         // [n_expert]: added for the choice only
  ExpertStack gate_, up_, gate_up_, down_;  // gate_ and up_, or gate_up_
  GatedMlp shared_;
  Linear shared_gate_;
};

}  // namespace hocket
