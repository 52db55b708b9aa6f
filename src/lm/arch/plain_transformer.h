// lm/arch/plain_transformer.h: a stack of pre-norm layers with grouped-query attention, described by settings.
//
// A family that is nothing else derives from it and fills in the settings in its read():
//
//   struct Qwen3 : PlainTransformer {
//     static Result<Qwen3> read(const HParams& hp, const Metadata& metadata) {
//       Qwen3 arch{PlainTransformer::of(hp, RopeKind::kNeox)};
//       TRY_ASSIGN(arch.ffn, FeedForwardSpec::read(hp, metadata));
//       arch.attn.head_norm = true;
//       return arch;
//     }
//   };
//
// Threads  const after make_globals().
// Source   language-models.md §3.0.
#pragma once

#include "lm/arch/registry.h"
#include "lm/blocks/pre_norm_block.h"
#include "lm/blocks/rope_factors.h"

namespace hocket {

struct PlainTransformer {
  using Layer = PreNormBlock;

  HParams hp;
  AttentionSpec attn;  // of every layer; head counts are set for each
  FeedForwardSpec ffn;
  PreNormStyle style;
  FrameSpec around;                       // what frame() says
  std::vector<bool> windowed;             // per layer; empty = none
  std::vector<bool> unrotated;            // layers without rope; empty = none
  std::optional<RopeSpec> windowed_rope;  // of windowed layers, when it is another
  RopeFactors factors;

  // The model's sizes, scale and softcap, all layers alike.
  static PlainTransformer of(const HParams& hp, RopeKind rope);

  void make_globals(WeightSet& w) { factors.make(w, hp.rope); }
  Layer make_layer(WeightSet& w, std::size_t il) const;
  KvLayerSpec memory_of(std::size_t il) const;
  Tensor run_layer(StepGraph& g, const Layer& l, std::size_t il, Tensor x) const {
    return l.run(g, il, x, factors.get(g));
  }
  FrameSpec frame() const { return around; }

 private:
  bool is_windowed(std::size_t il) const { return !windowed.empty() && windowed[il]; }
};

}  // namespace hocket
