#include "lm/blocks/moe.h"

#include <fmt/format.h>

#include <limits>

namespace hocket {

namespace {

// Keeps the division by the sum of the weights finite: the smallest normal number of half precision.
constexpr float kLeastSum = 6.103515625e-5f;

}  // namespace

ExpertStack ExpertStack::make(WeightSet& weights, const std::string& name, int64_t n_in, int64_t n_out,
                              const MoeSpec& spec) {
  ExpertStack stack;
  stack.weight = weights.matrix(name + ".weight", {n_in, n_out, spec.n_expert});
  stack.scale = weights.optional_vector(name + ".scale", {spec.n_expert});
  if (spec.bias == Bias::kRequired) stack.bias = weights.vector(name + ".bias", {n_out, spec.n_expert});
  if (spec.bias == Bias::kOptional) stack.bias = weights.optional_vector(name + ".bias", {n_out, spec.n_expert});
  return stack;
}

Tensor ExpertStack::run(StepGraph& g, Tensor x, Tensor ids) const {
  ggml_context* c = g.context();
  Tensor y = matmul_experts(g.graph(), weight, x, ids);
  if (f32_sums) ggml_prec_set_acc(y, GGML_PREC_F32);
  if (scale) {
    Tensor factors = ggml_get_rows(c, ggml_reshape_2d(c, scale, 1, scale->ne[0]),
                                   ggml_reshape_1d(c, ids, ids->ne[0] * ids->ne[1]));  // [1, n_used · n_tokens]
    y = ggml_mul(c, y, ggml_reshape_3d(c, factors, 1, ids->ne[0], ids->ne[1]));
  }
  return bias ? ggml_add_id(c, y, bias, ids) : y;
}

Moe Moe::make(WeightSet& weights, const std::string& prefix, const MoeSpec& spec) {
  Moe moe;
  moe.spec_ = spec;
  // A router is never quantised. What some files have as ffn_gate_inp.scale belongs to its input.
  moe.router_.weight = weights.matrix(prefix + "ffn_gate_inp.weight", {spec.n_embd, spec.n_expert});
  if (spec.bias == Bias::kRequired) moe.router_.bias = weights.vector(prefix + "ffn_gate_inp.bias", {spec.n_expert});
  if (spec.bias == Bias::kOptional)
    moe.router_.bias = weights.optional_vector(prefix + "ffn_gate_inp.bias", {spec.n_expert});
  moe.router_.f32_sums = true;
  moe.selection_bias_ = weights.optional_vector(prefix + "exp_probs_b.bias", {spec.n_expert});
  const auto stack = [&](const char* name, int64_t n_in, int64_t n_out) {
    return ExpertStack::make(weights, prefix + name, n_in, n_out, spec);
  };
  if (weights.has(prefix + "ffn_gate_up_exps.weight", {spec.n_embd, 2 * spec.n_ff, spec.n_expert})) {
    moe.gate_up_ = stack("ffn_gate_up_exps", spec.n_embd, 2 * spec.n_ff);
  } else {
    moe.gate_ = stack("ffn_gate_exps", spec.n_embd, spec.n_ff);
    moe.up_ = stack("ffn_up_exps", spec.n_embd, spec.n_ff);
  }
  moe.down_ = stack("ffn_down_exps", spec.n_ff, spec.n_embd);
  moe.down_.f32_sums = spec.f32_sums;
  if (spec.n_ff_shared > 0) {
    moe.shared_ = GatedMlp::make(weights, prefix,
                                 {.n_embd = spec.n_embd,
                                  .n_ff = spec.n_ff_shared,
                                  .activation = {spec.activation, spec.clamp_shared},
                                  .f32_sums = spec.f32_sums},
                                 "_shexp");
    if (spec.gated_shared)
      moe.shared_gate_.weight = weights.matrix(prefix + "ffn_gate_inp_shexp.weight", {spec.n_embd});
  } else if (const std::string name = prefix + "ffn_up_shexp.weight"; weights.has(name, {spec.n_embd, spec.n_ff})) {
    // Leaving them out would make a model that runs and answers nonsense.
    weights.fail(Error(ErrorCode::kBadModel,
                       fmt::format("there is a tensor {}, but neither expert_shared_feed_forward_length nor "
                                   "expert_shared_count says that there are shared experts",
                                   name),
                       name));
  }
  return moe;
}

// Scores [n_expert, n_tokens] with −∞ outside the token's best groups. A group's score is the sum of its two largest.
Tensor Moe::limit_groups(StepGraph& g, Tensor scores) const {
  ggml_context* c = g.context();
  const int64_t n_groups = spec_.n_group, n_each = spec_.n_expert / n_groups, n_tokens = scores->ne[1];
  Tensor grouped = ggml_reshape_3d(c, scores, n_each, n_groups, n_tokens);
  Tensor members = ggml_reshape_4d(c, scores, 1, n_each, n_groups, n_tokens);
  Tensor best = ggml_get_rows(c, members, ggml_top_k(c, grouped, 2));               // [1, 2, n_groups, n_tokens]
  Tensor sums = ggml_sum_rows(c, ggml_reshape_3d(c, best, 2, n_groups, n_tokens));  // [1, n_groups, n_tokens]
  Tensor groups = ggml_top_k(c, ggml_reshape_2d(c, sums, n_groups, n_tokens), static_cast<int>(spec_.n_group_used));
  Tensor none = ggml_fill(c, grouped, -std::numeric_limits<float>::infinity());
  Tensor limited = ggml_set_rows(c, none, ggml_get_rows(c, grouped, groups), groups);
  return ggml_reshape_2d(c, limited, spec_.n_expert, n_tokens);
}

Routing Moe::route(StepGraph& g, Tensor h) const {
  ggml_context* c = g.context();
  Tensor logits = router_.run(g, h);  // [n_expert, n_tokens]
  const int64_t n_used = spec_.n_used, n_tokens = logits->ne[1];
  const bool plain = !selection_bias_ && spec_.n_group == 1;  // the choice is that of the largest logits
  Gating gating = spec_.gating;
  bool norm = spec_.norm;
  // A softmax over all, cut to the chosen and divided by its sum, is the softmax over the chosen.
  if (gating == Gating::kSoftmax && norm && plain) gating = Gating::kSoftmaxOfSelected;
  if (gating == Gating::kSoftmaxOfSelected) norm = false;

  Tensor probs = logits;
  if (gating == Gating::kSoftmax) probs = ggml_soft_max(c, logits);
  if (gating == Gating::kSigmoid) probs = ggml_sigmoid(c, logits);
  if (gating == Gating::kSqrtSoftplus) probs = ggml_sqrt(c, ggml_softplus(c, logits));
  Tensor scores = selection_bias_ ? ggml_add(c, probs, selection_bias_) : probs;
  if (spec_.n_group > 1) scores = limit_groups(g, scores);
  // Not argsort: its sort may run outside its memory when scores are not numbers.
  Tensor ids = ggml_top_k(c, scores, static_cast<int>(n_used));

  Tensor w = ggml_get_rows(c, ggml_reshape_3d(c, probs, 1, spec_.n_expert, n_tokens), ids);  // [1, n_used, n_tokens]
  w = ggml_reshape_2d(c, w, n_used, n_tokens);
  if (gating == Gating::kSoftmaxOfSelected) w = ggml_soft_max(c, w);
  if (norm) {
    Tensor sum = ggml_clamp(c, ggml_sum_rows(c, w), kLeastSum, std::numeric_limits<float>::infinity());
    w = ggml_div(c, w, sum);
  }
  if (spec_.scale != 1.0f) w = ggml_scale(c, w, spec_.scale);
  return {ids, ggml_reshape_3d(c, w, 1, n_used, n_tokens)};
}

Tensor Moe::run(StepGraph& g, Tensor h, Tensor router_input) const {
  ggml_context* c = g.context();
  const int64_t n_tokens = h->ne[1];
  const Routing routing = route(g, router_input ? router_input : h);
  const GatedActivation activation{spec_.activation, spec_.clamp};
  Tensor x = ggml_reshape_3d(c, h, spec_.n_embd, 1, n_tokens);
  Tensor hidden = gate_up_.weight ? activation.run_fused(g, gate_up_.run(g, x, routing.ids))
                                  : activation.run(g, gate_.run(g, x, routing.ids), up_.run(g, x, routing.ids));
  Tensor y = down_.run(g, hidden, routing.ids);  // [n_embd, n_used, n_tokens]
  y = ggml_out_prod(c, y, routing.weights);      // Σ over the experts, [n_embd, 1, n_tokens]
  y = ggml_reshape_2d(c, y, spec_.n_embd, n_tokens);
  if (spec_.n_ff_shared == 0) return y;
  Tensor shared = shared_.run(g, h);
  if (shared_gate_.weight) shared = ggml_mul(c, shared, ggml_sigmoid(c, shared_gate_.run(g, h)));
  return ggml_add(c, y, shared);
}

}  // namespace hocket
