// lm/step_inputs.h: fills the inputs of a step's graph: tokens, positions, cells, masks, rows of states.
//
// Threads  one user at a time.
// Cost     O(n_tokens · n_cells) for the masks.
#pragma once

#include <span>
#include <vector>

#include "lm/step_graph.h"

namespace hocket {

// The shape of a step that was placed; `rows`: how many go through the head.
StepShape step_shape(const StepPlacement& placement, std::size_t n_tokens, std::size_t n_rows, StepOutput output);

struct StepInputs {
  std::span<const int32_t> tokens;     // in the order of the placement
  std::span<const float> activations;  // [n_activation, n_tokens], or empty
  std::span<const uint32_t> rows;      // wanted tokens; their order is that of the results
};

// The graph is allocated and has the placement's shape.
void fill_inputs(const StepGraph& g, const ModelMemory& memory, const StepPlacement& placement,
                 const StepInputs& inputs);

}  // namespace hocket
