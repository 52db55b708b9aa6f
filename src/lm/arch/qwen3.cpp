// qwen3, qwen3moe: Qwen 3, dense and with experts; qwen3vl, qwen3vlmoe: the text part of Qwen 3 VL.
//
// As llama, with half-split rope and an RMS norm of every query and key head; the head size does not follow from the
// width. For text the three position axes of the VL models are equal, which is plain rope.
// Source: language-models.md §§1.4, 3.2.
#include "lm/arch/plain_transformer.h"

namespace hocket {

namespace {

struct Qwen3 : PlainTransformer {
  static Result<Qwen3> read(const HParams& hp, const Metadata& metadata) {
    Qwen3 arch{PlainTransformer::of(hp, RopeKind::kNeox)};
    arch.attn.head_norm = true;
    TRY_ASSIGN(arch.ffn, FeedForwardSpec::read(hp, metadata, {.gating = Gating::kSoftmax, .norm = true}));
    arch.around.head_bias = Bias::kOptional;
    return arch;
  }
};

}  // namespace

ArchitectureFactory qwen3_architecture() {
  return ArchitectureOf<Qwen3>::make;
}

}  // namespace hocket
