#include "lm/trunk.h"

namespace hocket {

std::size_t nodes_of(std::size_t n_layer, std::size_t n_lane_groups) {
  const std::size_t n_more = n_lane_groups > 1 ? n_lane_groups - 1 : 0;
  return 128 + 4 * n_lane_groups + n_layer * (kNodesPerLayer + n_more * kNodesPerLaneGroup);
}

Trunk::Trunk(Architecture& arch, const HParams& hp, WeightSet& weights, std::size_t first, std::size_t end)
    : arch_(arch),
      first_(first),
      end_(end),
      n_embd_(hp.n_embd),
      has_head_(end == static_cast<std::size_t>(hp.n_layer)) {
  const FrameSpec frame = arch.frame();
  if (first == 0) embedding_ = Embedding::make(weights, hp, frame, "token_embd.weight");
  if (has_head_) {
    norm_ = RmsNorm::make(weights, std::string(frame.output_norm), hp.n_embd, hp.rms_eps);
    head_ = Head::make(weights, hp, frame);
  }
  arch.make_globals(weights);
  for (std::size_t il = first; il < end && weights.status().ok(); ++il) arch.make_layer(weights, il);
}

std::vector<LayerMemory> Trunk::memory_layout() const {
  std::vector<LayerMemory> layers;
  for (std::size_t il = first_; il < end_; ++il) layers.push_back(arch_.memory_of(il));
  return layers;
}

std::size_t Trunk::max_nodes(std::size_t n_lane_groups) const {
  return nodes_of(end_ - first_, n_lane_groups);
}

void Trunk::build(StepGraph& g) const {
  Tensor x = first_ == 0 ? embedding_.run(g) : g.activations();  // [n_embd, n_tokens] F32
  arch_.begin(g, x);
  for (std::size_t il = first_; il < end_; ++il) {
    g.set_trimming(has_head_ && il + 1 == end_ && g.shape().output != StepOutput::kLogitsAndHidden);
    x = arch_.run_layer(g, il, x);
  }
  if (has_head_) {
    finish(g, norm_, head_, x);
  } else {
    g.set_result(x);
  }
}

}  // namespace hocket
