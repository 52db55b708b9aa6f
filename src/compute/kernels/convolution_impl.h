// compute/kernels/convolution_impl.h: convolution.h over a type V of 16 floats (attention_impl.h says what it has).
#pragma once

#include <cstdint>

#include "compute/kernels/attention_impl.h"
#include "compute/kernels/convolution.h"

namespace hocket {
namespace {

template <typename V, int kCols>
void convolve_columns(const ConvolutionTile& t, int64_t first) {
  V sums[kCols];
  float* out = t.out + first * kConvolutionRows;
  for (int c = 0; c < kCols; ++c) sums[c] = V::load(out + c * kConvolutionRows);
  const float* weights = t.weights;
  for (int64_t tap = 0; tap < t.n_taps; ++tap) {
    const float* x = t.panel + first + tap;
    for (int64_t k = 0; k < t.n_in; ++k, weights += kConvolutionRows, x += t.panel_stride) {
      const V w = V::load(weights);
      for (int c = 0; c < kCols; ++c) sums[c] = V::fma(w, V::splat(x[c]), sums[c]);
    }
  }
  for (int c = 0; c < kCols; ++c) V::store(out + c * kConvolutionRows, sums[c]);
}

template <typename V>
void convolve(const ConvolutionTile& t) {
  int64_t column = 0;
  const auto tiles = [&]<int kCols>() {
    for (; column + kCols <= t.width; column += kCols) convolve_columns<V, kCols>(t, column);
  };
  if constexpr (V::kWide) tiles.template operator()<12>();
  tiles.template operator()<6>();
  tiles.template operator()<3>();
  tiles.template operator()<1>();
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
