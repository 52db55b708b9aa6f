// music/vae/residual_unit.h: x + conv₁( snake( conv₇( snake(x) ) ) ), the wide convolution with gaps between its taps.
//
// Threads  const.
// Source   ace-step.md N-42.
#pragma once

#include <array>
#include <string>

#include "music/vae/convolution.h"
#include "music/vae/snake.h"

namespace hocket {

// The gaps of the three units of a block.
inline constexpr std::array<int64_t, 3> kDilations{1, 3, 9};

class ResidualUnit {
 public:
  static ResidualUnit make(DerivedWeights& weights, const std::string& prefix, int64_t n_channels, int64_t dilation) {
    return {Snake::make(weights, prefix + "snake1", n_channels), Snake::make(weights, prefix + "snake2", n_channels),
            Convolution::make(weights, prefix + "conv1", n_channels, n_channels, 7, true),
            Convolution::make(weights, prefix + "conv2", n_channels, n_channels, 1, true), dilation};
  }
  // x [n_channels, n] → the same shape.
  Tensor run(NetworkGraph& g, Tensor x) const {
    Tensor y = wide_.run(g, first_.run(g, x), dilation_);
    return narrow_.run(g, second_.run(g, y), 1, x);
  }

 private:
  ResidualUnit(Snake first, Snake second, Convolution wide, Convolution narrow, int64_t dilation)
      : first_(first), second_(second), wide_(wide), narrow_(narrow), dilation_(dilation) {}

  Snake first_, second_;
  Convolution wide_, narrow_;
  int64_t dilation_;
};

}  // namespace hocket
