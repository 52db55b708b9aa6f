// qwen2: Qwen 2 and 2.5; qwen2moe: Qwen 1.5 and 2 with experts.
//
// As llama, with half-split rope and required offsets on query, key and value. The experts' weights are not normalised;
// the shared expert has a gate. Source: language-models.md §3.2.
#include "lm/arch/plain_transformer.h"

namespace hocket {

namespace {

struct Qwen2 : PlainTransformer {
  static Result<Qwen2> read(const HParams& hp, const Metadata& metadata) {
    Qwen2 arch{PlainTransformer::of(hp, RopeKind::kNeox)};
    arch.attn.qkv_bias = Bias::kRequired;
    TRY_ASSIGN(arch.ffn,
               FeedForwardSpec::read(hp, metadata, {.gating = Gating::kSoftmax, .norm = false, .gated_shared = true}));
    arch.around.head_bias = Bias::kOptional;
    return arch;
  }
};

}  // namespace

ArchitectureFactory qwen2_architecture() {
  return ArchitectureOf<Qwen2>::make;
}

}  // namespace hocket
