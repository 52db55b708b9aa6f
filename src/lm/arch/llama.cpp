// llama: Llama 1–3.x, Mistral 7B / Nemo, SmolLM2, Yi, TinyLlama and many more.
//
// Pre-norm blocks, grouped-query attention with adjacent-pair rope over all head dimensions, SiLU-gated feed-forward.
// Offsets on all projections where the file has them; tied head for small models. Source: language-models.md §3.1.
#include "lm/arch/registry.h"
#include "lm/blocks/pre_norm_block.h"
#include "lm/blocks/rope_factors.h"

namespace hocket {

namespace {

struct Llama {
  using Layer = PreNormBlock;
  HParams hp;
  RopeFactors factors;

  static Result<Llama> read(const HParams& hp, const Metadata&) {
    if (hp.n_expert > 0)
      return Error(ErrorCode::kUnsupported, "llama models with experts (Mixtral) cannot run", hp.key("expert_count"));
    if (hp.rope.n_rot != hp.head_dim_k)
      return Error(ErrorCode::kBadModel,
                   "llama rotates whole heads: rope.dimension_count must equal attention.key_length",
                   hp.key("rope.dimension_count"));
    Llama arch{hp, {}};
    arch.hp.rope.kind = RopeKind::kNorm;
    return arch;
  }

  void make_globals(WeightSet& w) { factors.make(w, hp.rope); }

  Layer make_layer(WeightSet& w, std::size_t il) const {
    const std::string p = block_prefix(il);
    AttentionSpec attn = AttentionSpec::of(hp, il);
    attn.qkv_bias = attn.output_bias = Bias::kOptional;
    return PreNormBlock::make(w, p, attn,
                              GatedMlp::make(w, p, hp.n_embd, hp.n_ff[il], Activation::kSilu, Bias::kOptional));
  }

  KvLayerSpec memory_of(std::size_t il) const { return {hp.n_kv_head[il], hp.head_dim_k, hp.head_dim_v, 0}; }

  Tensor run_layer(StepGraph& g, const Layer& l, std::size_t il, Tensor x) const {
    return l.run(g, il, x, factors.get(g));
  }
};

}  // namespace

ArchitectureFactory llama_architecture() {
  return ArchitectureOf<Llama>::make;
}

}  // namespace hocket
