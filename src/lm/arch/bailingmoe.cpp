// bailingmoe2: Ling 2.0, Ring 2.0; bailingmoe: Ling 1.x; deepseek: DeepSeek's first mixture of experts.
//
// bailingmoe2 has a fused query-key-value projection, an RMS norm of every query and key head, half-split rope over
// part of each head, and sigmoid routing limited to groups of experts. The other two have llama's attention and softmax
// routing. All have leading dense layers and shared experts. Source: language-models.md §§3.7, 3.9.
#include "lm/arch/plain_transformer.h"

namespace hocket {

namespace {

struct BailingMoe2 : PlainTransformer {
  static Result<BailingMoe2> read(const HParams& hp, const Metadata& metadata) {
    BailingMoe2 arch{PlainTransformer::of(hp, RopeKind::kNeox)};
    arch.attn.head_norm = true;
    TRY_ASSIGN(arch.ffn, FeedForwardSpec::read(hp, metadata, {.gating = Gating::kSigmoid}));
    return arch;
  }
};

struct BailingMoe : PlainTransformer {
  static Result<BailingMoe> read(const HParams& hp, const Metadata& metadata) {
    BailingMoe arch{PlainTransformer::of(hp, RopeKind::kNorm)};
    arch.attn.qkv_bias = arch.attn.output_bias = Bias::kOptional;
    TRY_ASSIGN(arch.ffn, FeedForwardSpec::read(hp, metadata, {.gating = Gating::kSoftmax}));
    return arch;
  }
};

}  // namespace

ArchitectureFactory bailingmoe_architecture() {
  return ArchitectureOf<BailingMoe>::make;
}

ArchitectureFactory bailingmoe2_architecture() {
  return ArchitectureOf<BailingMoe2>::make;
}

}  // namespace hocket
