// compute/kernels/float_impl.h: products of weights that are floats (F32, F16, BF16) over a type V of 16 floats
// (attention_impl.h says what it has). Activations stay floats; for each output one chain of fma in the order of k.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/kernels/attention_impl.h"
#include "compute/kernels/format.h"

namespace hocket {
namespace {

template <typename V, PackedFormat kFormat>
inline __attribute__((always_inline)) V load_weights(const std::byte* at) {
  if constexpr (kFormat == PackedFormat::kF16) return V::load_half(reinterpret_cast<const uint16_t*>(at));
  if constexpr (kFormat == PackedFormat::kBF16) return V::load_bf16(reinterpret_cast<const uint16_t*>(at));
  return V::load(reinterpret_cast<const float*>(at));
}

template <typename V, PackedFormat kFormat, int kCols>
void float_tile(const std::byte* group, int64_t n_in, const float* x, int width, float* out, int64_t out_stride) {
  constexpr int64_t kStep = kGroupRows * layout_of(kFormat).bits / 8;
  V sums[kCols];
  for (V& sum : sums) sum = V::splat(0.0f);
  for (int64_t k = 0; k < n_in; ++k, group += kStep, x += width) {
    const V weights = load_weights<V, kFormat>(group);
    for (int c = 0; c < kCols; ++c) sums[c] = V::fma(weights, V::splat(x[c]), sums[c]);
  }
  for (int c = 0; c < kCols; ++c) V::store(out + c * out_stride, sums[c]);
}

// As GroupProduct of kernel_table.h.
template <typename V, PackedFormat kFormat>
void float_product(const std::byte* group, int64_t n_in, const std::byte* panel, int width, float* out,
                   int64_t out_stride) {
  const auto* x = reinterpret_cast<const float*>(panel);
  int column = 0;
  const auto tiles = [&]<int kCols>() {
    for (; column + kCols <= width; column += kCols)
      float_tile<V, kFormat, kCols>(group, n_in, x + column, width, out + column * out_stride, out_stride);
  };
  if constexpr (V::kWide) tiles.template operator()<12>();
  tiles.template operator()<6>();
  tiles.template operator()<3>();
  tiles.template operator()<1>();
}

// Of a column, into its panel.
inline void place_floats(const float* x, int64_t first, int64_t end, std::byte* panel, int width, int column) {
  auto* to = reinterpret_cast<float*>(panel) + column;
  for (int64_t k = first; k < end; ++k) to[k * width] = x[k];
}

}  // namespace
}  // namespace hocket
