// phi3: Phi-3, Phi-3.5 and Phi-4-mini.
//
// Fused query-key-value and gate-up projections (separate ones are accepted), half-split rope over part of each head
// with LongRoPE factors chosen by the context size. The sliding-window key is ignored. Source: language-models.md §3.6.
#include "lm/arch/registry.h"
#include "lm/blocks/pre_norm_block.h"
#include "lm/blocks/rope_factors.h"

namespace hocket {

namespace {

struct Phi3 {
  using Layer = PreNormBlock;
  HParams hp;
  RopeFactors factors;

  static Result<Phi3> read(const HParams& hp, const Metadata&) {
    Phi3 arch{hp, {}};
    arch.hp.rope.kind = RopeKind::kNeox;
    return arch;
  }

  void make_globals(WeightSet& w) { factors.make(w, hp.rope); }

  Layer make_layer(WeightSet& w, std::size_t il) const {
    const std::string p = block_prefix(il);
    return PreNormBlock::make(
        w, p, AttentionSpec::of(hp, il),
        GatedMlp::make(w, p, hp.n_embd, hp.n_ff[il], Activation::kSilu, Bias::kNone, /*fused=*/true));
  }

  KvLayerSpec memory_of(std::size_t il) const { return {hp.n_kv_head[il], hp.head_dim_k, hp.head_dim_v, 0}; }

  Tensor run_layer(StepGraph& g, const Layer& l, std::size_t il, Tensor x) const {
    return l.run(g, il, x, factors.get(g));
  }

  FrameSpec frame() const { return {.head_bias = Bias::kOptional}; }
};

}  // namespace

ArchitectureFactory phi3_architecture() {
  return ArchitectureOf<Phi3>::make;
}

}  // namespace hocket
