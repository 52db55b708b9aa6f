// lm/blocks/feed_forward.h: the second half of a layer: dense in some layers, a mixture of experts in others.
//
// It knows nothing of the layer's first half, so that every family of models can use it.
//
// Errors   FeedForwardSpec::read(): kBadModel naming the key.
// Source   language-models.md §§1.3, 3.0, 3.8 "Clamping".
#pragma once

#include <variant>

#include "lm/blocks/mlp.h"
#include "lm/blocks/moe.h"

namespace hocket {

struct FeedForwardSpec {
  MlpSpec dense;              // n_ff and the clamp are set for each layer
  std::vector<int64_t> n_ff;  // per block
  int64_t n_leading_dense = 0;
  std::optional<MoeSpec> moe;  // of the layers after those
  // λ per block (see GatedActivation): of experts, and of shared experts and dense layers.
  std::vector<float> clamp_experts, clamp_others;

  // All layers dense when the file has no experts.
  static Result<FeedForwardSpec> read(const HParams& hp, const Metadata& metadata, const MoeRules& rules = {});
  bool has_experts(std::size_t il) const { return moe && static_cast<int64_t>(il) >= n_leading_dense; }
};

class FeedForward {
 public:
  FeedForward(GatedMlp dense) : block_(std::move(dense)) {}
  FeedForward(Moe moe) : block_(std::move(moe)) {}
  // Takes what GatedMlp or Moe take for block `il`.
  static FeedForward make(WeightSet& weights, const std::string& prefix, const FeedForwardSpec& spec, std::size_t il);
  // h [n_embd, n_tokens] → [n_embd, n_tokens].
  Tensor run(StepGraph& g, Tensor h) const;

 private:
  std::variant<GatedMlp, Moe> block_;
};

}  // namespace hocket
