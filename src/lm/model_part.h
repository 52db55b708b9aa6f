// lm/model_part.h: what a runner runs: some layers of a model, with what stands before and after them.
//
// The trunk (all layers, or a range of them) and a NextN block are parts. A part builds its graph; the runner gives it
// memory, inputs and threads.
//
// Owns     nothing: weights belong to the model.
// Threads  const.
#pragma once

#include <vector>

#include "lm/step_graph.h"
#include "memory/layer_memory.h"

namespace hocket {

class ModelPart {
 public:
  virtual ~ModelPart() = default;

  virtual std::vector<LayerMemory> memory_layout() const = 0;  // of the part's layers
  virtual std::size_t first_layer() const = 0;                 // their first index in the whole model
  virtual int64_t n_activation() const = 0;                    // width of what a step starts from; 0: tokens alone
  virtual bool has_head() const = 0;                           // gives logits, else activations
  // Nodes that a graph of this part may need at most.
  virtual std::size_t max_nodes(std::size_t n_lane_groups) const = 0;
  virtual void build(StepGraph& g) const = 0;  // sets the graph's results

  StepGraphOptions graph_options(bool flash_attention, std::size_t n_ctx, std::size_t n_lane_groups,
                                 const KernelTable* kernels) const {
    return {flash_attention, max_nodes(n_lane_groups), first_layer(), n_ctx, n_activation(), kernels};
  }
};

}  // namespace hocket
