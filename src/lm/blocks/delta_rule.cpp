#include "lm/blocks/delta_rule.h"

namespace hocket {

Tensor run_delta_rule(StepGraph& g, std::size_t layer, const LaneGroup& group, const DeltaInputs& in) {
  ggml_context* c = g.context();
  const int64_t head_dim = in.v->ne[0], n_head = in.v->ne[1];
  Tensor before = ggml_reshape_4d(c, g.state_before(layer, group), head_dim, head_dim, n_head, group.n_lanes);
  Tensor packed = g.delta_rule(in.q, in.k, in.v, in.gate, in.beta, before, group.n_written);
  const int64_t width = head_dim * n_head;
  const std::size_t row = static_cast<std::size_t>(width) * sizeof(float);
  const int64_t n_state = width * head_dim;
  Tensor states = ggml_view_2d(c, packed, n_state, group.n_lanes * group.n_written,
                               static_cast<std::size_t>(n_state) * sizeof(float),
                               row * static_cast<std::size_t>(group.n_tokens * group.n_lanes));
  g.set_state(layer, group, states);
  return ggml_view_3d(c, packed, width, group.n_tokens, group.n_lanes, row,
                      row * static_cast<std::size_t>(group.n_tokens), 0);
}

}  // namespace hocket
