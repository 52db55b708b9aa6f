// llama: Llama 1–3.x, Mistral 7B / Nemo, Mixtral, SmolLM2, Yi, TinyLlama and many more; smollm3: SmolLM3, in which
// every fourth layer has no rope; mistral3: Ministral 3, whose queries may grow with their position; granite,
// granitemoe: IBM Granite 3, which scales embeddings, residuals and logits.
//
// Pre-norm blocks, grouped-query attention with adjacent-pair rope over all head dimensions, SiLU-gated feed-forward or
// experts with normalised softmax weights. Offsets on all projections where the file has them; tied head for small
// models. Source: language-models.md §§3.1, 3.17.
#include <fmt/format.h>

#include <cmath>

#include "lm/arch/plain_transformer.h"

namespace hocket {

namespace {

constexpr double kLeastFactor = 1e-12;

struct Llama : PlainTransformer {
  static Result<Llama> read(const HParams& hp, const Metadata& metadata) {
    if (hp.rope.n_rot != hp.head_dim_k)
      return Error(ErrorCode::kBadModel,
                   hp.arch + " rotates whole heads: rope.dimension_count must equal attention.key_length",
                   hp.key("rope.dimension_count"));
    Llama arch{PlainTransformer::of(hp, RopeKind::kNorm)};
    arch.attn.qkv_bias = arch.attn.output_bias = Bias::kOptional;
    TRY_ASSIGN(arch.ffn, FeedForwardSpec::read(hp, metadata, {.gating = Gating::kSoftmax, .norm = true}));
    arch.ffn.dense.bias = Bias::kOptional;
    return arch;
  }
};

struct SmolLm3 : Llama {
  static Result<SmolLm3> read(const HParams& hp, const Metadata& metadata) {
    TRY_ASSIGN(Llama llama, Llama::read(hp, metadata));
    SmolLm3 arch{std::move(llama)};
    for (std::size_t il = 0; il < static_cast<std::size_t>(hp.n_layer); ++il) arch.unrotated.push_back(il % 4 == 3);
    return arch;
  }
};

struct Mistral3 : Llama {
  static Result<Mistral3> read(const HParams& hp, const Metadata& metadata) {
    TRY_ASSIGN(Llama llama, Llama::read(hp, metadata));
    Mistral3 arch{std::move(llama)};
    TRY_ASSIGN(arch.attn.temperature, AttentionTemperature::read(hp, metadata));
    return arch;
  }
};

struct Granite : Llama {
  static Result<Granite> read(const HParams& hp, const Metadata& metadata) {
    TRY_ASSIGN(Llama llama, Llama::read(hp, metadata));
    Granite arch{std::move(llama)};
    TRY_ASSIGN(arch.around.embedding_scale, factor(hp, metadata, "embedding_scale"));
    TRY_ASSIGN(arch.style.residual_scale, factor(hp, metadata, "residual_scale"));
    TRY_ASSIGN(const float divisor, factor(hp, metadata, "logit_scale"));
    arch.around.logit_scale = 1.0f / divisor;
    return arch;
  }

  // 1 where the file has none or 0.
  static Result<float> factor(const HParams& hp, const Metadata& metadata, const char* name) {
    const std::string key = hp.key(name);
    TRY_ASSIGN(const double value, metadata.number_or(key, 1.0));
    if (value == 0) return 1.0f;
    if (!(std::abs(value) >= kLeastFactor && std::abs(value) <= 1 / kLeastFactor))
      return Error(ErrorCode::kBadModel, fmt::format("{}: {} is out of range", key, value), key);
    return static_cast<float>(value);
  }
};

}  // namespace

ArchitectureFactory llama_architecture() {
  return ArchitectureOf<Llama>::make;
}

ArchitectureFactory smollm3_architecture() {
  return ArchitectureOf<SmolLm3>::make;
}

ArchitectureFactory mistral3_architecture() {
  return ArchitectureOf<Mistral3>::make;
}

ArchitectureFactory granite_architecture() {
  return ArchitectureOf<Granite>::make;
}

}  // namespace hocket
