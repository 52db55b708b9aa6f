// compute/kernels/convolution.h: a one-dimensional convolution over channels-first rows, and the snake activation.
//
// Weights stand in groups of 16 outputs, tap after tap, input after input: [n_taps][n_in][16]. A panel holds columns of
// x for up to 12 outputs and all taps, [width + n_taps − 1][n_in and some more], so that a tap is a shift by a column
// and every column is read once from memory.
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
constexpr int64_t kConvolutionTile = kConvolutionRows * kConvolutionColumns;  // floats

struct ConvolutionTile {
  const float* weights;  // of the first group
  int64_t group_stride;  // floats from group to group
  int64_t n_groups;      // 1 or 2, which a wide instruction set takes at once: a value of x then serves 32 outputs
  const float* panel;
  int64_t n_in, n_taps;
  int64_t panel_stride;  // floats from column to column
  int64_t width;         // 1 to 12
  float* out;            // of each group [12][16], of which `width` columns are added to
};
using ConvolveTile = void (*)(const ConvolutionTile& tile);

// y[i] = x[i] + height[i] · sin²(frequency[i] · x[i]) for i in [0, n). sin² has the period π: one reduction and an odd
// polynomial give it to 1e-7.
using SnakeRow = void (*)(const float* x, const float* frequency, const float* height, int64_t n, float* y);

}  // namespace hocket
