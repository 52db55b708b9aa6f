// lm/architecture.h: the contract between the framework, which owns the loop over layers, and an architecture, which
// describes one layer.
//
// An architecture is a struct A in lm/arch/ with
//
//   struct Layer { … blocks … };
//   static Result<A> read(const HParams&, const Metadata&);   // keys that only this family has
//   void make_globals(WeightSet&);                            // optional: tensors outside the layers
//   Layer make_layer(WeightSet&, std::size_t il) const;       // blocks take weights by name with the expected shape
//   LayerMemory memory_of(std::size_t il) const;              // what the layer remembers; a KvLayerSpec will do
//   Tensor run_layer(StepGraph&, const Layer&, std::size_t il, Tensor x) const;
//   FrameSpec frame() const;                                  // optional: what differs around the layers
//   void begin(StepGraph&, Tensor x) const;                   // optional: what all layers share, from the embeddings
//   bool can_start_at(std::size_t il) const;                  // optional: whether a part may begin with this layer
//
// and one row in lm/arch/registry.cpp. Embedding, positions, masks, the output head and the trimming to wanted rows are
// the framework's. Layers from n_layer on are NextN blocks. Adding one: docs/adding-a-model.md.
#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "lm/blocks/linear.h"
#include "lm/hparams.h"
#include "lm/step_graph.h"
#include "memory/layer_memory.h"
#include "weights/weight_set.h"

namespace hocket {

// What the framework does around the layers.
struct FrameSpec {
  float embedding_scale = 1.0f;
  float logit_scale = 1.0f;    // the logits are multiplied by it
  float final_softcap = 0.0f;  // then c · tanh(logits / c)
  Bias head_bias = Bias::kNone;
  std::string_view output_norm = "output_norm";
  std::string_view nextn_norm = "nextn.shared_head_norm";  // within a NextN block
  bool tied_head = false;                                  // the head is the embedding whatever the file has
};

class Architecture {
 public:
  virtual ~Architecture() = default;
  virtual void make_globals(WeightSet& weights) = 0;
  virtual void make_layer(WeightSet& weights, std::size_t il) = 0;
  virtual LayerMemory memory_of(std::size_t il) const = 0;
  virtual void begin(StepGraph& g, Tensor x) const = 0;
  virtual Tensor run_layer(StepGraph& g, std::size_t il, Tensor x) const = 0;
  virtual FrameSpec frame() const = 0;
  virtual bool can_start_at(std::size_t il) const = 0;
};

using ArchitectureFactory = Result<std::unique_ptr<Architecture>> (*)(const HParams&, const Metadata&);

struct ArchitectureRow {
  std::string_view name;
  ArchitectureFactory make;
};
// All architectures, by name.
const std::vector<ArchitectureRow>& architectures();

template <class A>
class ArchitectureOf final : public Architecture {
 public:
  explicit ArchitectureOf(A arch) : arch_(std::move(arch)) {}

  static Result<std::unique_ptr<Architecture>> make(const HParams& hp, const Metadata& metadata) {
    TRY_ASSIGN(A arch, A::read(hp, metadata));
    return std::unique_ptr<Architecture>(new ArchitectureOf(std::move(arch)));
  }
  void make_globals(WeightSet& weights) override {
    if constexpr (requires { arch_.make_globals(weights); }) arch_.make_globals(weights);
  }
  void make_layer(WeightSet& weights, std::size_t il) override {
    layers_.insert_or_assign(il, arch_.make_layer(weights, il));
  }
  LayerMemory memory_of(std::size_t il) const override { return LayerMemory{arch_.memory_of(il)}; }
  void begin(StepGraph& g, Tensor x) const override {
    if constexpr (requires { arch_.begin(g, x); }) arch_.begin(g, x);
  }
  Tensor run_layer(StepGraph& g, std::size_t il, Tensor x) const override {
    return arch_.run_layer(g, layers_.at(il), il, x);
  }
  FrameSpec frame() const override {
    if constexpr (requires { arch_.frame(); }) return arch_.frame();
    return {};
  }
  bool can_start_at(std::size_t il) const override {
    if constexpr (requires { arch_.can_start_at(il); }) return arch_.can_start_at(il);
    return true;
  }

 private:
  A arch_;
  std::map<std::size_t, typename A::Layer> layers_;
};

}  // namespace hocket
