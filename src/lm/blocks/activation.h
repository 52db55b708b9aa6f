// lm/blocks/activation.h: what a gated feed-forward does between its products: act(gate) ⊙ up.
//
// Source: language-models.md §3.0 "FFN, SwiGLU", §3.8 "Clamping", §3.15.
#pragma once

#include "lm/step_graph.h"

namespace hocket {

enum class Activation {
  kSilu,
  kGelu,       // the tanh approximation
  kSwigluOai,  // g = min(gate, 7), u = clamp(up, ±7): g · σ(1.702 g) · (u + 1)
};

struct GatedActivation {
  Activation kind = Activation::kSilu;
  // λ > kNoClamp: min(act(gate), λ) ⊙ clamp(up, ±λ). Smaller means none. kSwigluOai has limits of its own.
  float clamp = 0.0f;

  static constexpr float kNoClamp = 1e-6f;

  // gate, up [n_ff, …], rows evenly spaced → [n_ff, …].
  Tensor run(StepGraph& g, Tensor gate, Tensor up) const;
  // gate_up [2 · n_ff, …], contiguous, gate first → [n_ff, …].
  Tensor run_fused(StepGraph& g, Tensor gate_up) const;
};

}  // namespace hocket
