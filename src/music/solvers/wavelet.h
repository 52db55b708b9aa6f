// music/solvers/wavelet.h: correction of a step in the bands of a Haar transform along time.
//
// Threads  pure functions.
// Source   ace-step.md S-29.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace hocket {

enum class WaveletMode { kLow, kHigh, kDouble, kPixel };

std::optional<WaveletMode> parse_wavelet_mode(std::string_view name);  // "low", "high", "double", "pix"

struct WaveletCorrection {
  WaveletMode mode = WaveletMode::kLow;
  float scaler = 0, high_scaler = 0;
  bool active() const { return scaler > 0 || high_scaler > 0; }
};

// x [n_channels, n_frames] has just moved from t to t_next with velocity v: pushes it away from the clean sample that
// it predicts.
void correct_step(std::span<float> x, std::span<const float> v, std::size_t n_channels, float t, float t_next,
                  const WaveletCorrection& correction);

}  // namespace hocket
