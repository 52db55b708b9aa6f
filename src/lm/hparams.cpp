#include "lm/hparams.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace hocket {

namespace {

constexpr int64_t kMaxBlocks = 4096;
constexpr int64_t kMaxWidth = 1 << 20;
constexpr int64_t kMaxContext = std::numeric_limits<int32_t>::max();

Error bad_key(const std::string& key, std::string why) {
  return Error(ErrorCode::kBadModel, fmt::format("{}: {}", key, why), key);
}

Result<float> positive(const Metadata& metadata, const std::string& key, double fallback) {
  TRY_ASSIGN(const double value, metadata.number_or(key, fallback));
  if (!(value > 0 && value <= std::numeric_limits<float>::max()))
    return bad_key(key, fmt::format("{} is not positive", value));
  return static_cast<float>(value);
}

Result<float> finite(const Metadata& metadata, const std::string& key, double fallback) {
  TRY_ASSIGN(const double value, metadata.number_or(key, fallback));
  if (std::abs(value) > std::numeric_limits<float>::max()) return bad_key(key, "the number is too large");
  return static_cast<float>(value);
}

Result<void> read_rope(const Metadata& metadata, HParams& hp) {
  RopeSpec& rope = hp.rope;
  TRY_ASSIGN(const int64_t n_rot, metadata.integer_or(hp.key("rope.dimension_count"), hp.head_dim_k, 2, hp.head_dim_k));
  if (n_rot % 2 != 0) return bad_key(hp.key("rope.dimension_count"), fmt::format("{} is odd", n_rot));
  rope.n_rot = static_cast<int>(n_rot);
  TRY_ASSIGN(rope.freq_base, positive(metadata, hp.key("rope.freq_base"), 10000.0));
  TRY_ASSIGN(const int64_t n_ctx_orig,
             metadata.integer_or(hp.key("rope.scaling.original_context_length"), hp.n_ctx_train, 1, kMaxContext));
  rope.n_ctx_orig = static_cast<int>(n_ctx_orig);

  TRY_ASSIGN(const std::string type, metadata.string_or(hp.key("rope.scaling.type"), "linear"));
  TRY_ASSIGN(const double legacy, metadata.number_or(hp.key("rope.scale_linear"), 1.0));
  TRY_ASSIGN(double factor, metadata.number_or(hp.key("rope.scaling.factor"), legacy));
  if (factor < 0) return bad_key(hp.key("rope.scaling.factor"), fmt::format("{} is negative", factor));
  if (factor == 0) factor = 1;
  TRY_ASSIGN(rope.attn_factor, positive(metadata, hp.key("rope.scaling.attn_factor"), 1.0));
  TRY_ASSIGN(rope.beta_fast, positive(metadata, hp.key("rope.scaling.yarn_beta_fast"), 32.0));
  TRY_ASSIGN(rope.beta_slow, positive(metadata, hp.key("rope.scaling.yarn_beta_slow"), 1.0));
  if (type == "linear") {
    rope.freq_scale = static_cast<float>(1.0 / factor);
  } else if (type == "yarn") {
    rope.freq_scale = static_cast<float>(1.0 / factor);
    TRY_ASSIGN(rope.ext_factor, finite(metadata, hp.key("rope.scaling.yarn_ext_factor"), 1.0));
    TRY_ASSIGN(const float amplitude, positive(metadata, hp.key("rope.scaling.yarn_attn_factor"), 1.0));
    rope.attn_factor *= amplitude;
  } else if (type != "none" && type != "longrope") {
    return bad_key(hp.key("rope.scaling.type"), fmt::format("\"{}\" is not one of none, linear, yarn, longrope", type));
  }
  return {};
}

}  // namespace

Result<HParams> HParams::read(const Metadata& metadata, int64_t n_vocab) {
  HParams hp;
  TRY_ASSIGN(hp.arch, metadata.string("general.architecture"));
  TRY_ASSIGN(hp.n_ctx_train, metadata.integer(hp.key("context_length"), 1, kMaxContext));
  TRY_ASSIGN(hp.n_embd, metadata.integer(hp.key("embedding_length"), 1, kMaxWidth));
  TRY_ASSIGN(hp.n_block, metadata.integer(hp.key("block_count"), 1, kMaxBlocks));
  TRY_ASSIGN(const int64_t n_nextn, metadata.integer_or(hp.key("nextn_predict_layers"), 0, 0, hp.n_block - 1));
  hp.n_layer = hp.n_block - n_nextn;
  hp.n_vocab = n_vocab;

  const auto n_block = static_cast<std::size_t>(hp.n_block);
  TRY_ASSIGN(hp.n_ff, metadata.per_layer(hp.key("feed_forward_length"), n_block, 0, 0, kMaxWidth * 4));
  TRY_ASSIGN(hp.n_head, metadata.per_layer(hp.key("attention.head_count"), n_block, std::nullopt, 0, kMaxWidth));
  if (metadata.has(hp.key("attention.head_count_kv"))) {
    TRY_ASSIGN(hp.n_kv_head,
               metadata.per_layer(hp.key("attention.head_count_kv"), n_block, std::nullopt, 0, kMaxWidth));
  } else {
    hp.n_kv_head = hp.n_head;
  }
  for (std::size_t i = 0; i < n_block; ++i)
    if (hp.n_kv_head[i] > 0 && hp.n_head[i] % hp.n_kv_head[i] != 0)
      return bad_key(hp.key("attention.head_count_kv"),
                     fmt::format("{} does not divide the {} heads of block {}", hp.n_kv_head[i], hp.n_head[i], i));

  const int64_t default_dim = hp.n_head[0] > 0 ? hp.n_embd / hp.n_head[0] : 0;
  TRY_ASSIGN(hp.head_dim_k, metadata.integer_or(hp.key("attention.key_length"), default_dim, 1, kMaxWidth));
  TRY_ASSIGN(hp.head_dim_v, metadata.integer_or(hp.key("attention.value_length"), default_dim, 1, kMaxWidth));
  TRY_ASSIGN(hp.rms_eps, positive(metadata, hp.key("attention.layer_norm_rms_epsilon"), 1e-5));
  TRY(read_rope(metadata, hp));
  TRY_ASSIGN(hp.rope_base_swa, positive(metadata, hp.key("rope.freq_base_swa"), 10000.0));
  TRY_ASSIGN(hp.n_swa, metadata.integer_or(hp.key("attention.sliding_window"), 0, 0, kMaxContext));
  TRY_ASSIGN(hp.attn_scale, finite(metadata, hp.key("attention.scale"), 0.0));
  TRY_ASSIGN(hp.attn_softcap, finite(metadata, hp.key("attn_logit_softcapping"), 0.0));
  TRY_ASSIGN(hp.final_softcap, finite(metadata, hp.key("final_logit_softcapping"), 0.0));
  TRY_ASSIGN(hp.n_expert, metadata.integer_or(hp.key("expert_count"), 0, 0, 65536));
  TRY_ASSIGN(const int64_t pooling, metadata.integer_or(hp.key("pooling_type"), 0, 0, 4));
  static constexpr const char* kPooling[] = {"none", "mean", "cls", "last", "rank"};
  hp.pooling = kPooling[pooling];
  return hp;
}

float HParams::attention_scale() const {
  return attn_scale != 0.0f ? attn_scale : 1.0f / std::sqrt(static_cast<float>(head_dim_k));
}

}  // namespace hocket
