// tests/support/reference/moe.h: naive double-precision twin of the mixture of experts: one token at a time, experts
// found by sorting.
#pragma once

#include <limits>
#include <numeric>

#include "support/reference/transformer.h"

namespace hocket::test::reference {

enum class Router { kSoftmax, kSigmoid, kSoftmaxOfSelected, kSqrtSoftplus };
enum class Gate { kSilu, kGelu, kSwigluOai };

struct MoeWeights {
  std::size_t n_expert = 0, n_used = 0, n_group = 1, n_group_used = 1;
  Router router = Router::kSoftmax;
  bool norm = false;
  double scale = 1;
  Gate gate_kind = Gate::kSilu;
  double clamp = 0, clamp_shared = 0;              // 0 = none
  Row router_weight, router_bias, selection_bias;  // empty = none
  Row gate, up, down;                              // of all experts, one after another
  Row gate_bias, up_bias, down_bias;               // empty = none
  Row gate_scale, up_scale, down_scale;            // of each expert; empty = none
  Row shared_gate_proj, shared_up, shared_down;    // empty = no shared expert
  Row shared_gate;                                 // empty = always 1
};

inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

inline Row gated(Row gate, Row up, Gate kind, double clamp) {
  for (std::size_t i = 0; i < gate.size(); ++i) {
    if (kind == Gate::kSwigluOai) {
      const double g = std::min(gate[i], 7.0), u = std::clamp(up[i], -7.0, 7.0);
      gate[i] = g * sigmoid(1.702 * g) * (u + 1);
      continue;
    }
    double act = kind == Gate::kGelu ? gelu(gate[i]) : silu(gate[i]), u = up[i];
    if (clamp > 0) {
      act = std::min(act, clamp);
      u = std::clamp(u, -clamp, clamp);
    }
    gate[i] = act * u;
  }
  return gate;
}

// The chosen experts of a token and their weights.
struct Choice {
  std::vector<std::size_t> experts;
  Row weights;
};

inline Choice choose(const MoeWeights& w, const Row& h) {
  Row logits = product(w.router_weight, h);
  for (std::size_t e = 0; e < w.router_bias.size(); ++e) logits[e] += w.router_bias[e];
  const auto softmax = [](Row x) {
    const double most = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (double& v : x) sum += v = std::exp(v - most);
    for (double& v : x) v /= sum;
    return x;
  };
  Row probs = logits;
  if (w.router == Router::kSoftmax) probs = softmax(logits);
  for (double& p : probs) {
    if (w.router == Router::kSigmoid) p = sigmoid(p);
    if (w.router == Router::kSqrtSoftplus) p = std::sqrt(std::log1p(std::exp(p)));
  }
  Row scores = probs;
  for (std::size_t e = 0; e < w.selection_bias.size(); ++e) scores[e] += w.selection_bias[e];
  const auto best_first = [](const Row& values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
    return order;
  };
  if (w.n_group > 1) {
    const std::size_t n_each = w.n_expert / w.n_group;
    Row group_scores;
    for (std::size_t group = 0; group < w.n_group; ++group) {
      const auto first = scores.begin() + static_cast<std::ptrdiff_t>(group * n_each);
      Row members(first, first + static_cast<std::ptrdiff_t>(n_each));
      std::sort(members.rbegin(), members.rend());
      group_scores.push_back(members[0] + members[1]);
    }
    const auto order = best_first(group_scores);
    for (std::size_t i = w.n_group_used; i < w.n_group; ++i)
      for (std::size_t e = 0; e < n_each; ++e) scores[order[i] * n_each + e] = -std::numeric_limits<double>::infinity();
  }
  Choice choice{best_first(scores), {}};
  choice.experts.resize(w.n_used);
  for (const std::size_t e : choice.experts) choice.weights.push_back(probs[e]);
  if (w.router == Router::kSoftmaxOfSelected) choice.weights = softmax(choice.weights);
  if (w.norm) {
    const double sum = std::max(std::accumulate(choice.weights.begin(), choice.weights.end(), 0.0), 6.103515625e-5);
    for (double& v : choice.weights) v /= sum;
  }
  for (double& v : choice.weights) v *= w.scale;
  return choice;
}

inline Row moe(const MoeWeights& w, const Row& h) {
  const auto expert_product = [&](const Row& stack, const Row& scales, const Row& biases, std::size_t e, const Row& x) {
    const std::size_t n = stack.size() / w.n_expert;
    const auto first = stack.begin() + static_cast<std::ptrdiff_t>(e * n);
    Row y = product(Row(first, first + static_cast<std::ptrdiff_t>(n)), x);
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (!scales.empty()) y[i] *= scales[e];
      if (!biases.empty()) y[i] += biases[e * y.size() + i];
    }
    return y;
  };
  Row out(h.size(), 0.0);
  const Choice choice = choose(w, h);
  for (std::size_t i = 0; i < w.n_used; ++i) {
    const std::size_t e = choice.experts[i];
    const Row hidden = gated(expert_product(w.gate, w.gate_scale, w.gate_bias, e, h),
                             expert_product(w.up, w.up_scale, w.up_bias, e, h), w.gate_kind, w.clamp);
    const Row y = expert_product(w.down, w.down_scale, w.down_bias, e, hidden);
    for (std::size_t j = 0; j < y.size(); ++j) out[j] += choice.weights[i] * y[j];
  }
  if (w.shared_down.empty()) return out;
  const Row y = product(w.shared_down,
                        gated(product(w.shared_gate_proj, h), product(w.shared_up, h), w.gate_kind, w.clamp_shared));
  const double open = w.shared_gate.empty() ? 1 : sigmoid(product(w.shared_gate, h)[0]);
  for (std::size_t j = 0; j < y.size(); ++j) out[j] += open * y[j];
  return out;
}

}  // namespace hocket::test::reference
