// compute/kernels/convolution_impl.h: convolution.h over a type V of 16 floats (attention_impl.h says what it has).
#pragma once

#include <cstdint>

#include "compute/kernels/attention_impl.h"
#include "compute/kernels/convolution.h"

namespace hocket {
namespace {

// Columns [first, first + kCols) of kGroups groups from `group` on.
template <typename V, int kCols, int kGroups>
void convolve_columns(const ConvolutionTile& t, int64_t group, int64_t first) {
  V sums[kGroups * kCols];
  float* out = t.out + group * kConvolutionTile + first * kConvolutionRows;
  for (int g = 0; g < kGroups; ++g)
    for (int c = 0; c < kCols; ++c) sums[g * kCols + c] = V::load(out + g * kConvolutionTile + c * kConvolutionRows);
  const float* weights = t.weights + group * t.group_stride;
  for (int64_t tap = 0; tap < t.n_taps; ++tap) {
    // A pointer for every third column: the other two are its neighbours by one and two strides.
    const float* x[(kCols + 2) / 3];
    for (int i = 0; i < (kCols + 2) / 3; ++i) x[i] = t.panel + (first + tap + 3 * i) * t.panel_stride;
    for (int64_t k = 0; k < t.n_in; ++k, weights += kConvolutionRows) {
      V w[kGroups];
      for (int g = 0; g < kGroups; ++g) w[g] = V::load(weights + g * t.group_stride);
      for (int c = 0; c < kCols; ++c) {
        const V value = V::splat(x[c / 3][c % 3 * t.panel_stride + k]);
        for (int g = 0; g < kGroups; ++g) sums[g * kCols + c] = V::fma(w[g], value, sums[g * kCols + c]);
      }
    }
  }
  for (int g = 0; g < kGroups; ++g)
    for (int c = 0; c < kCols; ++c) V::store(out + g * kConvolutionTile + c * kConvolutionRows, sums[g * kCols + c]);
}

template <typename V, int kGroups>
void convolve_groups(const ConvolutionTile& t, int64_t group) {
  int64_t column = 0;
  const auto tiles = [&]<int kCols>() {
    for (; column + kCols <= t.width; column += kCols) convolve_columns<V, kCols, kGroups>(t, group, column);
  };
  if constexpr (V::kWide) tiles.template operator()<12>();
  tiles.template operator()<6>();
  tiles.template operator()<3>();
  tiles.template operator()<1>();
}

template <typename V>
void convolve(const ConvolutionTile& t) {
  int64_t group = 0;
  if constexpr (V::kWide)
    for (; group + 2 <= t.n_groups; group += 2) convolve_groups<V, 2>(t, group);
  for (; group < t.n_groups; ++group) convolve_groups<V, 1>(t, group);
}

template <typename V>
inline __attribute__((always_inline)) V snake_of(V x, V frequency, V height) {
  const V z = V::mul(x, frequency);
  const V k = V::round(V::mul(z, V::splat(0.318309886f)));
  // π in parts: the first two products are exact for every k that leaves the sine any meaning.
  V r = V::fma(k, V::splat(-3.140625f), z);
  r = V::fma(k, V::splat(-9.67653589793e-4f), r);
  r = V::fma(k, V::splat(-5.0e-12f), r);
  // Beyond that the argument is noise; it must not become more than a sine.
  r = V::max(r, V::splat(-1.6f));
  r = V::mul(V::max(V::mul(r, V::splat(-1.0f)), V::splat(-1.6f)), V::splat(-1.0f));
  const V q = V::mul(r, r);
  // Taylor series of the sine: the first term left out is below 6e-8 up to π/2.
  V p = V::splat(-2.5052108e-8f);
  p = V::fma(p, q, V::splat(2.7557319e-6f));
  p = V::fma(p, q, V::splat(-1.9841270e-4f));
  p = V::fma(p, q, V::splat(8.3333333e-3f));
  p = V::fma(p, q, V::splat(-1.6666667e-1f));
  p = V::fma(p, q, V::splat(1.0f));
  const V s = V::mul(p, r);
  return V::fma(V::mul(s, s), height, x);
}

template <typename V>
void snake(const float* x, const float* frequency, const float* height, int64_t n, float* y) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    V::store(y + i, snake_of<V>(V::load(x + i), V::load(frequency + i), V::load(height + i)));
  if (i == n) return;
  float rest[3][16] = {};
  for (int64_t j = i; j < n; ++j) {
    rest[0][j - i] = x[j];
    rest[1][j - i] = frequency[j];
    rest[2][j - i] = height[j];
  }
  V::store(rest[0], snake_of<V>(V::load(rest[0]), V::load(rest[1]), V::load(rest[2])));
  for (int64_t j = i; j < n; ++j) y[j] = rest[0][j - i];
}

}  // namespace
}  // namespace hocket
