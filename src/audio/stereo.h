// audio/stereo.h: the one form in which sound passes between modules.
//
// Threads  plain values.
#pragma once

#include <cstddef>
#include <vector>

namespace hocket {

// Two channels of equal length, ±1 at full scale.
struct StereoAudio {
  int rate_hz = 48'000;
  std::vector<float> left, right;

  std::size_t n_samples() const { return left.size(); }  // of each channel
  double seconds() const { return static_cast<double>(left.size()) / rate_hz; }
};

}  // namespace hocket
