// kimi-linear: Kimi Linear.
//
// KDA layers whose decay is a softplus and whose decay and gate are of low rank, and latent attention without rotation
// where attention.head_count_kv is not 0; some dense layers, then experts with a sigmoid. Source: language-models.md
// §3.10.
#include "lm/arch/registry.h"
#include "lm/blocks/kda.h"
#include "lm/blocks/mixed_block.h"
#include "lm/blocks/mla.h"

namespace hocket {

namespace {

struct KimiLinear {
  using Layer = MixedBlock<Kda, Mla>;
  HParams hp;
  KdaSpec kda;
  MlaSpec mla;
  FeedForwardSpec ffn;

  static Result<KimiLinear> read(const HParams& hp, const Metadata& metadata) {
    KimiLinear arch{hp, {}, {}, {}};
    TRY_ASSIGN(arch.kda, KdaSpec::read(hp, metadata));
    arch.kda.low_rank = true;
    TRY_ASSIGN(arch.mla, MlaSpec::read(hp, metadata));
    arch.mla.rope.kind = RopeKind::kNone;
    TRY_ASSIGN(arch.ffn, FeedForwardSpec::read(hp, metadata, {.gating = Gating::kSigmoid, .norm = true}));
    return arch;
  }

  bool latent(std::size_t il) const { return hp.n_kv_head[il] != 0; }

  Layer make_layer(WeightSet& w, std::size_t il) const {
    const std::string p = block_prefix(il);
    const auto mixer = [&]() -> Layer::Mixer {
      if (latent(il)) return Mla::make(w, p, mla);
      return Kda::make(w, p, kda);
    };
    return Layer::make(w, p, hp, mixer(), FeedForward::make(w, p, ffn, il));
  }

  LayerMemory memory_of(std::size_t il) const {
    if (latent(il)) return {.kv = mla.memory()};
    return {.recurrent = kda.memory()};
  }

  Tensor run_layer(StepGraph& g, const Layer& l, std::size_t il, Tensor x) const { return l.run(g, il, x); }
};

}  // namespace

ArchitectureFactory kimi_linear_architecture() {
  return ArchitectureOf<KimiLinear>::make;
}

}  // namespace hocket
