// glm4moe: GLM-4.5 and 4.6; glm4: GLM-4, dense.
//
// Offsets on query, key and value, rope over part of each head. glm4moe has half-split rope, the larger model an RMS
// norm of every query and key head, leading dense layers, then sigmoid routing with a shared expert. glm4 has
// adjacent-pair rope, a fused gate-up projection, and norms before and after each sublayer. Results of attention and
// feed-forward pass the range of half precision. Source: language-models.md §§1.4, 3.11, 7.1.
#include "lm/arch/plain_transformer.h"

namespace hocket {

namespace {

struct Glm4Moe : PlainTransformer {
  static Result<Glm4Moe> read(const HParams& hp, const Metadata& metadata) {
    Glm4Moe arch{PlainTransformer::of(hp, RopeKind::kNeox)};
    arch.attn.qkv_bias = Bias::kRequired;
    arch.attn.optional_head_norm = true;
    arch.attn.f32_sums = true;
    arch.style.ffn_norm = "post_attention_norm";
    TRY_ASSIGN(arch.ffn,
               FeedForwardSpec::read(hp, metadata, {.gating = Gating::kSigmoid, .norm = true, .f32_sums = true}));
    return arch;
  }
};

struct Glm4 : PlainTransformer {
  static Result<Glm4> read(const HParams& hp, const Metadata& metadata) {
    // With sections for three position axes, which text has equal, the rope is the half-split one.
    const bool sections = metadata.has(hp.key("rope.dimension_sections"));
    Glm4 arch{PlainTransformer::of(hp, sections ? RopeKind::kNeox : RopeKind::kNorm)};
    arch.attn.qkv_bias = Bias::kOptional;
    arch.attn.f32_sums = true;
    arch.style.post_norms = true;
    TRY_ASSIGN(arch.ffn, FeedForwardSpec::read(hp, metadata, {.f32_sums = true}));
    arch.ffn.dense.fused = true;
    return arch;
  }
};

}  // namespace

ArchitectureFactory glm4_architecture() {
  return ArchitectureOf<Glm4>::make;
}

ArchitectureFactory glm4moe_architecture() {
  return ArchitectureOf<Glm4Moe>::make;
}

}  // namespace hocket
