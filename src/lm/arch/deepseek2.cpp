// deepseek2: DeepSeek V2 and V3, R1, Kimi K2, GLM-4.7-Flash; mistral4: Mistral Large 3, whose queries may grow with
// their position.
//
// Latent attention with or without low-rank queries; some dense layers, then experts: softmax gating in V2, sigmoid
// with a selection bias and groups later. NextN block: latent attention and experts. Source: language-models.md §3.9.
#include "lm/arch/registry.h"
#include "lm/blocks/feed_forward.h"
#include "lm/blocks/mla.h"

namespace hocket {

namespace {

// Converted GLM-4.7-Flash files name no gating; they need a sigmoid.
constexpr int64_t kLayersOfGlmFlash = 47, kVocabularyOfGlmFlash = 154880;

struct DeepSeek2 {
  struct Layer {
    RmsNorm attn_norm;
    Mla attn;
    RmsNorm ffn_norm;
    FeedForward ffn;
  };
  HParams hp;
  MlaSpec mla;
  FeedForwardSpec ffn;

  static Result<DeepSeek2> read(const HParams& hp, const Metadata& metadata) {
    DeepSeek2 arch{hp, {}, {}};
    TRY_ASSIGN(arch.mla, MlaSpec::read(hp, metadata));
    const bool glm_flash = hp.n_layer == kLayersOfGlmFlash && hp.n_vocab == kVocabularyOfGlmFlash;
    TRY_ASSIGN(arch.ffn,
               FeedForwardSpec::read(hp, metadata, {.gating = glm_flash ? Gating::kSigmoid : Gating::kSoftmax}));
    return arch;
  }

  Layer make_layer(WeightSet& w, std::size_t il) const {
    const std::string p = block_prefix(il);
    return {RmsNorm::make(w, p + "attn_norm", hp.n_embd, hp.rms_eps), Mla::make(w, p, mla),
            RmsNorm::make(w, p + "ffn_norm", hp.n_embd, hp.rms_eps), FeedForward::make(w, p, ffn, il)};
  }

  KvLayerSpec memory_of(std::size_t) const { return mla.memory(); }

  Tensor run_layer(StepGraph& g, const Layer& l, std::size_t il, Tensor x) const {
    x = g.residual(x, l.attn.run(g, il, l.attn_norm.run(g, x)));
    return g.residual(x, l.ffn.run(g, l.ffn_norm.run(g, x)));
  }
};

}  // namespace

ArchitectureFactory deepseek2_architecture() {
  return ArchitectureOf<DeepSeek2>::make;
}

}  // namespace hocket
