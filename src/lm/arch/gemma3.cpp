// gemma3, gemma2: Gemma 3 (text) and Gemma 2.
//
// Norms before and after each sublayer, GELU-gated feed-forward, embeddings scaled by √n_embd, tied head. The norms' +1
// is already in the weights. gemma3 has an RMS norm of every query and key head; five of six layers see only a window
// and have a rope of their own. gemma2 caps scores and logits, and every other layer has a window. Source:
// language-models.md §§1.7, 3.3.
#include <cmath>

#include "lm/arch/plain_transformer.h"

namespace hocket {

namespace {

struct Gemma : PlainTransformer {
  // layers_of_27b: the one size whose scores are scaled by the width, not by the head size.
  static Result<Gemma> read(HParams hp, const Metadata& metadata, std::size_t period, int64_t layers_of_27b) {
    if (hp.n_layer == layers_of_27b && hp.attn_scale == 0.0f && hp.n_head[0] > 0)
      hp.attn_scale = 1.0f / std::sqrt(static_cast<float>(hp.n_embd) / static_cast<float>(hp.n_head[0]));
    Gemma arch{PlainTransformer::of(hp, RopeKind::kNeox)};
    arch.style.post_norms = true;
    TRY_ASSIGN(arch.windowed, read_window_pattern(hp, metadata, period));
    TRY_ASSIGN(arch.ffn, FeedForwardSpec::read(hp, metadata, {.activation = Activation::kGelu}));
    arch.around.embedding_scale = std::sqrt(static_cast<float>(hp.n_embd));
    arch.around.final_softcap = hp.final_softcap;
    return arch;
  }
};

struct Gemma3 : Gemma {
  static Result<Gemma3> read(const HParams& hp, const Metadata& metadata) {
    TRY_ASSIGN(Gemma gemma, Gemma::read(hp, metadata, /*period=*/6, /*layers_of_27b=*/62));
    Gemma3 arch{std::move(gemma)};
    arch.attn.head_norm = true;
    arch.windowed_rope = arch.attn.rope;
    arch.windowed_rope->freq_base = hp.rope_base_swa;
    arch.windowed_rope->freq_scale = 1.0f;
    return arch;
  }
};

struct Gemma2 : Gemma {
  static Result<Gemma2> read(HParams hp, const Metadata& metadata) {
    if (!metadata.has(hp.key("attn_logit_softcapping"))) hp.attn_softcap = 50.0f;
    if (!metadata.has(hp.key("final_logit_softcapping"))) hp.final_softcap = 30.0f;
    if (!metadata.has(hp.key("attention.sliding_window"))) hp.n_swa = 4096;
    TRY_ASSIGN(Gemma gemma, Gemma::read(hp, metadata, /*period=*/2, /*layers_of_27b=*/46));
    return Gemma2{std::move(gemma)};
  }
};

}  // namespace

ArchitectureFactory gemma2_architecture() {
  return ArchitectureOf<Gemma2>::make;
}

ArchitectureFactory gemma3_architecture() {
  return ArchitectureOf<Gemma3>::make;
}

}  // namespace hocket
