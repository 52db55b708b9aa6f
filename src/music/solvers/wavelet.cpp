#include "music/solvers/wavelet.h"

#include <numbers>

#include "base/check.h"

namespace hocket {

std::optional<WaveletMode> parse_wavelet_mode(std::string_view name) {
  if (name == "low") return WaveletMode::kLow;
  if (name == "high") return WaveletMode::kHigh;
  if (name == "double") return WaveletMode::kDouble;
  if (name == "pix") return WaveletMode::kPixel;
  return std::nullopt;
}

void correct_step(std::span<float> x, std::span<const float> v, std::size_t n_channels, float t, float t_next,
                  const WaveletCorrection& correction) {
  CHECK(x.size() == v.size() && x.size() % n_channels == 0);
  // x − y = v · t_next, with y the clean sample that is predicted.
  if (correction.mode == WaveletMode::kPixel) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += correction.scaler * (v[i] * t_next);
    return;
  }
  float low = 0, high = 0;
  if (correction.mode != WaveletMode::kHigh) low = t * correction.scaler;
  if (correction.mode == WaveletMode::kHigh) high = (1 - t) * correction.scaler;
  if (correction.mode == WaveletMode::kDouble) high = (1 - t) * correction.high_scaler;
  if (low == 0 && high == 0) return;
  // The transform is linear and orthonormal: only the correction needs to go through it, pair by pair.
  constexpr float kHalfRoot = std::numbers::sqrt2_v<float> / 2;
  const std::size_t n_frames = x.size() / n_channels;
  for (std::size_t f = 0; f < n_frames; f += 2) {
    const bool paired = f + 1 < n_frames;
    for (std::size_t c = 0; c < n_channels; ++c) {
      const std::size_t a = f * n_channels + c, b = a + n_channels;
      const float da = v[a] * t_next, db = paired ? v[b] * t_next : 0.0f;
      const float dl = low * (da + db) * kHalfRoot, dh = high * (da - db) * kHalfRoot;
      x[a] += (dl + dh) * kHalfRoot;
      if (paired) x[b] += (dl - dh) * kHalfRoot;
    }
  }
}

}  // namespace hocket
