// qwen3: Qwen 3, dense.
//
// As llama, with half-split rope and an RMS norm of every query and key head; the head size does not follow from the
// width. Source: language-models.md §3.2.
#include "lm/arch/registry.h"
#include "lm/blocks/pre_norm_block.h"
#include "lm/blocks/rope_factors.h"

namespace hocket {

namespace {

struct Qwen3 {
  using Layer = PreNormBlock;
  HParams hp;
  RopeFactors factors;

  static Result<Qwen3> read(const HParams& hp, const Metadata&) {
    Qwen3 arch{hp, {}};
    arch.hp.rope.kind = RopeKind::kNeox;
    return arch;
  }

  void make_globals(WeightSet& w) { factors.make(w, hp.rope); }

  Layer make_layer(WeightSet& w, std::size_t il) const {
    const std::string p = block_prefix(il);
    AttentionSpec attn = AttentionSpec::of(hp, il);
    attn.head_norm = true;
    return PreNormBlock::make(w, p, attn, GatedMlp::make(w, p, hp.n_embd, hp.n_ff[il], Activation::kSilu));
  }

  KvLayerSpec memory_of(std::size_t il) const { return {hp.n_kv_head[il], hp.head_dim_k, hp.head_dim_v, 0}; }

  Tensor run_layer(StepGraph& g, const Layer& l, std::size_t il, Tensor x) const {
    return l.run(g, il, x, factors.get(g));
  }
};

}  // namespace

ArchitectureFactory qwen3_architecture() {
  return ArchitectureOf<Qwen3>::make;
}

}  // namespace hocket
