// lm/trunk.h: the layers of a model, or a range of them, with the embedding before the first and the head after the
// last.
//
// Owns     nothing; weights are declared in the model's WeightSet.
// Threads  const after construction.
#pragma once

#include "lm/frame.h"
#include "lm/model_part.h"

namespace hocket {

class Trunk final : public ModelPart {
 public:
  // Declares the weights of layers [first, end) and what stands around them.
  Trunk(Architecture& arch, const HParams& hp, WeightSet& weights, std::size_t first, std::size_t end);

  std::vector<LayerMemory> memory_layout() const override;
  std::size_t first_layer() const override { return first_; }
  int64_t n_activation() const override { return first_ == 0 ? 0 : n_embd_; }
  bool has_head() const override { return has_head_; }
  std::size_t max_nodes(std::size_t n_lane_groups) const override;
  void build(StepGraph& g) const override;

 private:
  const Architecture& arch_;
  std::size_t first_, end_;
  int64_t n_embd_;
  bool has_head_;
  Embedding embedding_;
  RmsNorm norm_;
  Head head_;
};

// Generous bounds of the nodes of a layer: the largest of today take about half.
inline constexpr std::size_t kNodesPerLayer = 384;
inline constexpr std::size_t kNodesPerLaneGroup = 64;  // of a layer, beyond the first group
std::size_t nodes_of(std::size_t n_layer, std::size_t n_lane_groups);

}  // namespace hocket
