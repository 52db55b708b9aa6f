#include "music/vae/snake.h"

#include <algorithm>
#include <cmath>

namespace hocket {
namespace {

std::vector<float> exponentials(const std::vector<float>& values, float sign) {
  std::vector<float> out;
  for (const float value : values) out.push_back(std::exp(sign * value));
  return out;
}

// Without branches and calls, so that compilers make vector code of loops over it.
inline float sine_squared(float z) {
  constexpr float kInversePi = 0.318309886f;
  constexpr float kPiHigh = 3.140625f, kPiMiddle = 9.67653589793e-4f, kPiLow = 5.0e-12f;  // π in parts
  constexpr float kRound = 12'582'912.0f;                                                 // 1.5 · 2²³
  const float k = (z * kInversePi + kRound) - kRound;
  float r = ((z - k * kPiHigh) - k * kPiMiddle) - k * kPiLow;
  r = std::min(std::max(r, -1.6f), 1.6f);
  const float q = r * r;
  // Taylor series of the sine: the first term left out is below 6e-8 up to π/2.
  const float s =
      r * (1.0f + q * (-1.0f / 6 + q * (1.0f / 120 + q * (-1.0f / 5040 + q * (1.0f / 362'880 + q * -2.5052108e-8f)))));
  return s * s;
}

void snake_rows(ggml_tensor* dst, int ith, int nth, void*) {
  const ggml_tensor* x = dst->src[0];
  const auto* frequency = static_cast<const float*>(dst->src[1]->data);
  const auto* height = static_cast<const float*>(dst->src[2]->data);
  const int64_t n_channels = dst->ne[0], n_rows = dst->ne[1];
  for (int64_t row = n_rows * ith / nth, end = n_rows * (ith + 1) / nth; row < end; ++row) {
    const auto* in = reinterpret_cast<const float*>(static_cast<const char*>(x->data) + row * x->nb[1]);
    auto* out = reinterpret_cast<float*>(static_cast<char*>(dst->data) + row * dst->nb[1]);
    for (int64_t i = 0; i < n_channels; ++i) out[i] = in[i] + height[i] * sine_squared(frequency[i] * in[i]);
  }
}

}  // namespace

Snake Snake::make(DerivedWeights& weights, const std::string& name, int64_t n_channels, bool on_cpu) {
  Snake snake;
  snake.on_cpu_ = on_cpu;
  snake.frequency_ = weights.declare({n_channels}, {{name + ".alpha", {1, n_channels, 1}}},
                                     [](const DerivedWeights::Sources& s) { return exponentials(s[0], 1.0f); });
  snake.height_ = weights.declare({n_channels}, {{name + ".beta", {1, n_channels, 1}}},
                                  [](const DerivedWeights::Sources& s) { return exponentials(s[0], -1.0f); });
  return snake;
}

Tensor Snake::run(NetworkGraph& g, Tensor x) const {
  ggml_context* c = g.context();
  if (on_cpu_) {
    Tensor args[] = {x, frequency_, height_};
    return ggml_custom_4d(c, GGML_TYPE_F32, x->ne[0], x->ne[1], 1, 1, args, 3, snake_rows, GGML_N_TASKS_MAX, nullptr);
  }
  Tensor wave = ggml_sqr(c, ggml_sin(c, ggml_mul(c, x, frequency_)));
  return ggml_add(c, x, ggml_mul(c, wave, height_));
}

}  // namespace hocket
