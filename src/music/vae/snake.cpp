#include "music/vae/snake.h"

#include <cmath>

#include "compute/convolutions.h"

namespace hocket {
namespace {

std::vector<float> exponentials(const std::vector<float>& values, float sign) {
  std::vector<float> out;
  for (const float value : values) out.push_back(std::exp(sign * value));
  return out;
}

}  // namespace

Snake Snake::make(DerivedWeights& weights, const std::string& name, int64_t n_channels) {
  Snake snake;
  snake.kernels_ = weights.own_kernels();
  snake.frequency_ = weights.declare({n_channels}, {{name + ".alpha", {1, n_channels, 1}}},
                                     [](const DerivedWeights::Sources& s) { return exponentials(s[0], 1.0f); });
  snake.height_ = weights.declare({n_channels}, {{name + ".beta", {1, n_channels, 1}}},
                                  [](const DerivedWeights::Sources& s) { return exponentials(s[0], -1.0f); });
  return snake;
}

Tensor Snake::run(NetworkGraph& g, Tensor x) const {
  ggml_context* c = g.context();
  if (kernels_) return g.convolutions().snake(c, *kernels_, x, frequency_, height_);
  Tensor wave = ggml_sqr(c, ggml_sin(c, ggml_mul(c, x, frequency_)));
  return ggml_add(c, x, ggml_mul(c, wave, height_));
}

}  // namespace hocket
