// kimi-linear: Kimi Linear.
//
// KDA layers whose decay is a softplus and whose decay and gate are of low rank, and latent attention without rotation
// where attention.head_count_kv is not 0; some dense layers, then experts with a sigmoid. Source: language-models.md
// §3.10.
#include "lm/arch/kda_hybrid.h"

namespace hocket {

namespace {

struct KimiLinear : KdaHybrid {
  static Result<KimiLinear> read(const HParams& hp, const Metadata& metadata) {
    KimiLinear arch{{hp, {}, {}, {}}};
    TRY_ASSIGN(arch.kda, KdaSpec::read(hp, metadata));
    arch.kda.low_rank = true;
    TRY_ASSIGN(arch.mla, MlaSpec::read(hp, metadata));
    arch.mla.rope.kind = RopeKind::kNone;
    TRY_ASSIGN(arch.ffn, FeedForwardSpec::read(hp, metadata, {.gating = Gating::kSigmoid, .norm = true}));
    return arch;
  }
};

}  // namespace

ArchitectureFactory kimi_linear_architecture() {
  return ArchitectureOf<KimiLinear>::make;
}

}  // namespace hocket
