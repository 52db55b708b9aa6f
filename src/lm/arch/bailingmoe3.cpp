// bailingmoe3: Ling 3.0.
//
// KDA layers with a bounded decay, and latent attention with a gate of each head where attention.head_count_kv is not
// 0; some dense layers, then experts in groups with a sigmoid and clamped activations. NextN block: latent attention
// and experts. Source: language-models.md §3.8.
#include "lm/arch/kda_hybrid.h"

namespace hocket {

namespace {

struct BailingMoe3 : KdaHybrid {
  static Result<BailingMoe3> read(const HParams& hp, const Metadata& metadata) {
    BailingMoe3 arch{{hp, {}, {}, {}}};
    TRY_ASSIGN(arch.kda, KdaSpec::read(hp, metadata));
    TRY_ASSIGN(const bool safe_gate, metadata.boolean_or(hp.key("kda.safe_gate"), true));
    if (!safe_gate)
      return Error(ErrorCode::kUnsupported, "only the bounded decay is known for this family", hp.key("kda.safe_gate"));
    TRY_ASSIGN(const double bound, metadata.number(hp.key("kda.gate_lower_bound")));
    // The state shrinks by e^bound at most; beyond -80 that is 0 in F32.
    if (!(bound < 0 && bound >= -80))
      return Error(ErrorCode::kBadModel, "the bound must be negative and at least -80", hp.key("kda.gate_lower_bound"));
    arch.kda.lower_bound = static_cast<float>(bound);
    TRY_ASSIGN(arch.mla, MlaSpec::read(hp, metadata));
    arch.mla.head_gate = true;
    TRY_ASSIGN(arch.ffn, FeedForwardSpec::read(hp, metadata, {.gating = Gating::kSigmoid}));
    return arch;
  }

  FrameSpec frame() const { return {.nextn_norm = "layer_output_norm"}; }
};

}  // namespace

ArchitectureFactory bailingmoe3_architecture() {
  return ArchitectureOf<BailingMoe3>::make;
}

}  // namespace hocket
