// compute/kernels/convolution.h: a one-dimensional convolution over channels-first rows, and the snake activation.
//
// Weights stand in groups of 16 outputs, tap after tap, input after input: [n_taps][n_in][16]. A panel holds columns of
// x for up to 12 outputs and all taps, [n_in][width + n_taps − 1], so that a tap is a shift within it and every column
// is read once from memory.
//
// For each output one chain of fma from what the tile holds, in the order of taps, then inputs: all tables give the
// same bits, whatever the panel's width.
//
// Threads  pure functions.
#pragma once

#include <cstdint>

namespace hocket {

constexpr int64_t kConvolutionRows = 16;
constexpr int64_t kConvolutionColumns = 12;

struct ConvolutionTile {
  const float* weights;  // of a group
  const float* panel;
  int64_t n_in, n_taps;
  int64_t panel_stride;  // floats from input to input
  int64_t width;         // 1 to 12
  float* out;            // [width][16], added to
};
using ConvolveTile = void (*)(const ConvolutionTile& tile);

// y[i] = x[i] + height[i] · sin²(frequency[i] · x[i]) for i in [0, n). sin² has the period π: one reduction and an odd
// polynomial give it to 1e-7.
using SnakeRow = void (*)(const float* x, const float* frequency, const float* height, int64_t n, float* y);

}  // namespace hocket
