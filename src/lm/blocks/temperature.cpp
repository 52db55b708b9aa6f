#include "lm/blocks/temperature.h"

#include <fmt/format.h>

#include <cmath>

namespace hocket {

namespace {
constexpr double kMaxScale = 1e6;
}

Result<AttentionTemperature> AttentionTemperature::read(const HParams& hp, const Metadata& metadata) {
  AttentionTemperature temperature;
  const std::string key = hp.key("attention.temperature_scale");
  TRY_ASSIGN(const double scale, metadata.number_or(key, 0.0));
  if (!(std::abs(scale) <= kMaxScale))
    return Error(ErrorCode::kBadModel, fmt::format("{}: {} is out of range", key, scale), key);
  if (scale != 0 && hp.rope.n_ctx_orig < 1)
    return Error(ErrorCode::kBadModel, key + " needs rope.scaling.original_context_length",
                 hp.key("rope.scaling.original_context_length"));
  temperature.scale = static_cast<float>(scale);
  temperature.length = hp.rope.n_ctx_orig;
  return temperature;
}

Tensor AttentionTemperature::run(StepGraph& g, Tensor q) const {
  if (scale == 0.0f) return q;
  ggml_context* c = g.context();
  Tensor positions = ggml_cast(c, g.query_positions(), GGML_TYPE_F32);
  // Half a token more keeps a multiple of L from rounding to below itself.
  const float per_length = 1.0f / static_cast<float>(length);
  Tensor lengths = ggml_floor(c, ggml_scale_bias(c, positions, per_length, 0.5f * per_length));
  Tensor factors = ggml_scale_bias(c, ggml_log(c, ggml_scale_bias(c, lengths, 1.0f, 1.0f)), scale, 1.0f);
  return ggml_mul(c, q, ggml_reshape_3d(c, factors, 1, 1, factors->ne[0]));
}

}  // namespace hocket
