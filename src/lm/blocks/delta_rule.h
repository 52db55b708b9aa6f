// lm/blocks/delta_rule.h: the gated delta rule over the lanes of a step: the recurrence of gated delta nets and KDA.
//
// For each value head, with a state M (key channels × value channels), decay g, keys and queries of norm 1:
//   M ← diag(e^g) M;  δ = β (v − Mᵀ k);  M ← M + k δᵀ;  o = Mᵀ q / √S
//
// Source   language-models.md §3.12; Yang et al., "Gated Delta Networks", arXiv 2412.06464; "Kimi Linear", 2510.26692.
#pragma once

#include "lm/step_graph.h"

namespace hocket {

struct DeltaInputs {
  Tensor q = nullptr;     // [S, n_k_head, n, n_lanes], of norm 1
  Tensor k = nullptr;     // [S, n_k_head, n, n_lanes], of norm 1
  Tensor v = nullptr;     // [S, n_v_head, n, n_lanes]; value head h goes with key head h mod n_k_head
  Tensor gate = nullptr;  // [1 or S, n_v_head, n, n_lanes]: logarithm of the decay, of a head or of each key channel
  Tensor beta = nullptr;  // [1, n_v_head, n, n_lanes]
};

// Advances the layer's states. → [S · n_v_head, n of a lane, n_lanes].
Tensor run_delta_rule(StepGraph& g, std::size_t layer, const LaneGroup& group, const DeltaInputs& inputs);

// Floats of a layer's state row.
inline int64_t delta_state_size(int64_t head_dim, int64_t n_v_head) {
  return head_dim * head_dim * n_v_head;
}

}  // namespace hocket
