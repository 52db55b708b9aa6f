// gpt-oss: gpt-oss 20B and 120B.
//
// Offsets on every projection, half-split rope with YaRN, a sink per attention head, and a window in every other layer,
// the first one included. Softmax over the chosen experts, whose activation is a clamped SwiGLU with offsets; published
// files have them in MXFP4. Source: language-models.md §§1.7, 3.15.
#include "lm/arch/plain_transformer.h"

namespace hocket {

namespace {

constexpr std::size_t kPeriod = 2;  // the last layer of each two sees everything

struct GptOss : PlainTransformer {
  static Result<GptOss> read(const HParams& hp, const Metadata& metadata) {
    GptOss arch{PlainTransformer::of(hp, RopeKind::kNeox)};
    arch.attn.qkv_bias = arch.attn.output_bias = Bias::kRequired;
    arch.attn.sinks = true;
    arch.style.ffn_norm = "post_attention_norm";
    TRY_ASSIGN(arch.windowed, read_window_pattern(hp, metadata, kPeriod));
    TRY_ASSIGN(arch.ffn, FeedForwardSpec::read(hp, metadata,
                                               {.gating = Gating::kSoftmaxOfSelected,
                                                .activation = Activation::kSwigluOai,
                                                .bias = Bias::kRequired}));
    return arch;
  }
};

}  // namespace

ArchitectureFactory gpt_oss_architecture() {
  return ArchitectureOf<GptOss>::make;
}

}  // namespace hocket
