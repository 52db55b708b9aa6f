// phi3: Phi-3, Phi-3.5 and Phi-4-mini.
//
// Fused query-key-value and gate-up projections (separate ones are accepted), half-split rope over part of each head
// with LongRoPE factors chosen by the context size. The sliding-window key is ignored. Source: language-models.md §3.6.
#include "lm/arch/plain_transformer.h"

namespace hocket {

namespace {

struct Phi3 : PlainTransformer {
  static Result<Phi3> read(const HParams& hp, const Metadata& metadata) {
    Phi3 arch{PlainTransformer::of(hp, RopeKind::kNeox)};
    TRY_ASSIGN(arch.ffn, FeedForwardSpec::read(hp, metadata));
    arch.ffn.dense.fused = true;
    arch.around.head_bias = Bias::kOptional;
    return arch;
  }
};

}  // namespace

ArchitectureFactory phi3_architecture() {
  return ArchitectureOf<Phi3>::make;
}

}  // namespace hocket
