// lm/architecture.h: the contract between the framework, which owns the loop over layers, and an architecture, which
// describes one layer.
//
// An architecture is a struct A in lm/arch/ with
//
//   struct Layer { … blocks … };
//   static Result<A> read(const HParams&, const Metadata&);   // keys that only this family has
//   void make_globals(WeightSet&);                            // optional: tensors outside the layers
//   Layer make_layer(WeightSet&, std::size_t il) const;       // blocks take weights by name with the expected shape
//   KvLayerSpec memory_of(std::size_t il) const;              // what the layer remembers
//   Tensor run_layer(StepGraph&, const Layer&, std::size_t il, Tensor x) const;
//   FrameSpec frame() const;                                  // optional: what differs around the layers
//
// and one row in lm/arch/registry.cpp. Embedding, positions, masks, the output head and the trimming to wanted rows are
// the framework's. Adding one: docs/adding-a-model.md.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "lm/blocks/linear.h"
#include "lm/hparams.h"
#include "lm/step_graph.h"
#include "memory/kv_cache.h"
#include "weights/weight_set.h"

namespace hocket {

// What the framework does around the layers.
struct FrameSpec {
  float embedding_scale = 1.0f;
  float logit_scale = 1.0f;    // the logits are multiplied by it
  float final_softcap = 0.0f;  // then c · tanh(logits / c)
  Bias head_bias = Bias::kNone;
  std::string_view output_norm = "output_norm";
};

class Architecture {
 public:
  virtual ~Architecture() = default;
  virtual void make_weights(WeightSet& weights) = 0;
  virtual std::size_t n_layer() const = 0;
  virtual KvLayerSpec memory_of(std::size_t il) const = 0;
  virtual Tensor run_layer(StepGraph& g, std::size_t il, Tensor x) const = 0;
  virtual FrameSpec frame() const = 0;
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
  ArchitectureOf(A arch, std::size_t n_layer) : arch_(std::move(arch)), n_layer_(n_layer) {}

  static Result<std::unique_ptr<Architecture>> make(const HParams& hp, const Metadata& metadata) {
    TRY_ASSIGN(A arch, A::read(hp, metadata));
    return std::unique_ptr<Architecture>(new ArchitectureOf(std::move(arch), static_cast<std::size_t>(hp.n_layer)));
  }
  void make_weights(WeightSet& weights) override {
    if constexpr (requires { arch_.make_globals(weights); }) arch_.make_globals(weights);
    layers_.clear();
    for (std::size_t il = 0; il < n_layer_ && weights.status().ok(); ++il)
      layers_.push_back(arch_.make_layer(weights, il));
  }
  std::size_t n_layer() const override { return n_layer_; }
  KvLayerSpec memory_of(std::size_t il) const override { return arch_.memory_of(il); }
  Tensor run_layer(StepGraph& g, std::size_t il, Tensor x) const override {
    return arch_.run_layer(g, layers_[il], il, x);
  }
  FrameSpec frame() const override {
    if constexpr (requires { arch_.frame(); }) return arch_.frame();
    return {};
  }

 private:
  A arch_;
  std::size_t n_layer_;
  std::vector<typename A::Layer> layers_;
};

}  // namespace hocket
