#include "music/dit/timestep.h"

#include <cmath>

namespace hocket {

std::vector<float> timestep_sinusoid(float t) {
  constexpr int64_t kHalf = kSinusoidWidth / 2;
  std::vector<float> values(kSinusoidWidth);
  for (int64_t k = 0; k < kHalf; ++k) {
    const float frequency = std::exp(-std::log(10'000.0f) * static_cast<float>(k) / static_cast<float>(kHalf));
    const float angle = 1000.0f * t * frequency;
    values[static_cast<std::size_t>(k)] = std::cos(angle);
    values[static_cast<std::size_t>(k + kHalf)] = std::sin(angle);
  }
  return values;
}

TimestepEmbedder TimestepEmbedder::make(WeightSet& weights, const std::string& prefix, int64_t n_embd) {
  TimestepEmbedder e;
  e.first_ = Projection::make(weights, prefix + ".linear_1", kSinusoidWidth, n_embd, true);
  e.second_ = Projection::make(weights, prefix + ".linear_2", n_embd, n_embd, true);
  e.project_ = Projection::make(weights, prefix + ".time_proj", n_embd, 6 * n_embd, true);
  return e;
}

TimestepEmbedder::Embedding TimestepEmbedder::run(NetworkGraph& g, Tensor sinusoid, const std::string& tap) const {
  ggml_context* c = g.context();
  Tensor first = first_.run(g, sinusoid);
  g.tap("temb_lin1_" + tap, first);
  Tensor embedding = second_.run(g, ggml_silu(c, first));
  g.tap("temb_" + tap, embedding);
  return {embedding, project_.run(g, ggml_silu(c, embedding))};
}

}  // namespace hocket
