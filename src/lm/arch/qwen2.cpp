// qwen2: Qwen 2 and 2.5.
//
// As llama, with half-split rope and required offsets on query, key and value. Source: language-models.md §3.2.
#include "lm/arch/registry.h"
#include "lm/blocks/pre_norm_block.h"
#include "lm/blocks/rope_factors.h"

namespace hocket {

namespace {

struct Qwen2 {
  using Layer = PreNormBlock;
  HParams hp;
  RopeFactors factors;

  static Result<Qwen2> read(const HParams& hp, const Metadata&) {
    Qwen2 arch{hp, {}};
    arch.hp.rope.kind = RopeKind::kNeox;
    return arch;
  }

  void make_globals(WeightSet& w) { factors.make(w, hp.rope); }

  Layer make_layer(WeightSet& w, std::size_t il) const {
    const std::string p = block_prefix(il);
    AttentionSpec attn = AttentionSpec::of(hp, il);
    attn.qkv_bias = Bias::kRequired;
    return PreNormBlock::make(w, p, attn, GatedMlp::make(w, p, hp.n_embd, hp.n_ff[il], Activation::kSilu));
  }

  KvLayerSpec memory_of(std::size_t il) const { return {hp.n_kv_head[il], hp.head_dim_k, hp.head_dim_v, 0}; }

  Tensor run_layer(StepGraph& g, const Layer& l, std::size_t il, Tensor x) const {
    return l.run(g, il, x, factors.get(g));
  }

  FrameSpec frame() const { return {.head_bias = Bias::kOptional}; }
};

}  // namespace

ArchitectureFactory qwen2_architecture() {
  return ArchitectureOf<Qwen2>::make;
}

}  // namespace hocket
