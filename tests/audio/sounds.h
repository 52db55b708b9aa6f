// Sounds for tests: sines, and how like two clips are.
#pragma once

#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "audio/stereo.h"

namespace hocket::test {

inline StereoAudio sines(double seconds, int rate_hz, double left_hz, double right_hz, float level = 0.5f) {
  StereoAudio audio;
  audio.rate_hz = rate_hz;
  const auto n = static_cast<std::size_t>(seconds * rate_hz);
  for (std::size_t i = 0; i < n; ++i) {
    const double t = 2 * std::numbers::pi * static_cast<double>(i) / rate_hz;
    audio.left.push_back(level * static_cast<float>(std::sin(left_hz * t)));
    audio.right.push_back(level * static_cast<float>(std::sin(right_hz * t)));
  }
  return audio;
}

// The amplitude of one frequency in the middle half of a channel.
inline double amplitude_at(const std::vector<float>& channel, int rate_hz, double hz) {
  double re = 0, im = 0;
  const std::size_t first = channel.size() / 4, last = channel.size() * 3 / 4;
  for (std::size_t i = first; i < last; ++i) {
    const double angle = 2 * std::numbers::pi * hz * static_cast<double>(i) / rate_hz;
    re += channel[i] * std::cos(angle);
    im += channel[i] * std::sin(angle);
  }
  return 2 * std::hypot(re, im) / static_cast<double>(last - first);
}

}  // namespace hocket::test
