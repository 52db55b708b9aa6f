// compute/kernels/product_impl.h: GroupProduct of kernel_table.h for weights that are not floats, over what an
// instruction set brings.
//
// A product is cut into tiles of columns, and a tile's group into parts of rows. A type Isa says
//
//   kMostColumns      of a tile
//   has_tile(n)       whether there are tiles of n columns; there are of 1
//   kWholePanels      a tile is always a whole panel
//   Tile<kColumns>    a type T of what a tile is computed with
//
// and T has, for kRows rows and kTogether columns in a vector of floats or of 32-bit sums:
//
//   Floats, Ints                  those vectors
//   halves, unsigned_bytes, signed_bytes, low_nibbles, high_nibbles, powers   (at): a scale of each row
//   columns, column_ints          (at): a number of each column, the same for all rows
//   to_floats, mul, fma, fnma, zero_floats, zero_ints, store
//   kUnsigned<bits>               weights are multiplied as they are stored, so that their zero has to be taken off
//   multiply<kFormat, kFirst, kEnd>(values, x, dots)   adds steps [kFirst, kEnd) of a block to dots[columns /
//   kTogether] prefetch<kBytes>(at)          what a product of few columns will read later
//
// All is of internal linkage, and no template of the standard library is instantiated: the including files are compiled
// for instructions that not every CPU has, and the linker could take their code for the whole program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/kernels/format.h"

namespace hocket {
namespace {

#define HOCKET_INLINE inline __attribute__((always_inline))

// f<i>() for i in [kFirst, kEnd), unrolled.
template <int kFirst, int kEnd, typename F>
HOCKET_INLINE void unrolled(const F& f) {
  if constexpr (kFirst < kEnd) {
    f.template operator()<kFirst>();
    unrolled<kFirst + 1, kEnd>(f);
  }
}

template <typename T, Scales kScales>
HOCKET_INLINE typename T::Floats scale_of_block(const std::byte* record, int64_t row) {
  if constexpr (kScales == Scales::kPower) return T::powers(record + row);
  return T::halves(record + 2 * row);
}

// Of K formats: of sub-block `sub`. `d` is that of the record.
template <typename T, Scales kScales>
HOCKET_INLINE typename T::Floats scale_of_sub_block(typename T::Floats d, const std::byte* record, int64_t sub,
                                                    int64_t row) {
  if constexpr (kScales == Scales::kSuperMinimum) return T::mul(d, T::unsigned_bytes(record + 64 + 16 * sub + row));
  if constexpr (kScales == Scales::kSuperMinimum16) return T::mul(d, T::low_nibbles(record + 64 + 16 * sub + row));
  return T::mul(d, T::signed_bytes(record + 32 + 16 * sub + row));
}

// What has to be subtracted.
template <typename T, Scales kScales>
HOCKET_INLINE typename T::Floats minimum_of_sub_block(const std::byte* record, int64_t sub, int64_t row) {
  const typename T::Floats d_min = T::halves(record + 32 + 2 * row);
  if constexpr (kScales == Scales::kSuperMinimum)
    return T::mul(d_min, T::unsigned_bytes(record + 192 + 16 * sub + row));
  return T::mul(d_min, T::high_nibbles(record + 64 + 16 * sub + row));
}

// Rows [first_row, first_row + kRows) of a group and columns [column, column + kColumns) of a panel, whose width is
// kWidth if that is not 0.
template <typename T, PackedFormat kFormat, int kColumns, int kWidth>
void tile(const std::byte* group, int64_t first_row, int64_t n_in, const std::byte* panel, int panel_width, int column,
          float* out, int64_t out_stride) {
  using Floats = typename T::Floats;
  constexpr FormatLayout kLayout = layout_of(kFormat);
  constexpr ActivationForm kForm = form_of(kLayout);
  constexpr ScaleRecord kRecord = record_of(kLayout.scales);
  constexpr int kValueBytes = static_cast<int>(value_bytes(kLayout.bits));
  constexpr int kTogether = T::kTogether, kVectors = kColumns / kTogether;
  const int64_t width = kWidth != 0 ? kWidth : panel_width;
  const std::byte* values = group + 4 * first_row;
  const std::byte* record = group + group_value_bytes(kLayout, n_in);
  const std::byte* x = panel + kBlock * column;
  const auto* x_scales = reinterpret_cast<const float*>(panel + panel_scales_at(n_in, width)) + column;
  const std::byte* x_sums = panel + panel_sums_at(kForm, n_in, width) + 4 * column;
  const auto sum_at = [&](int i) __attribute__((always_inline)) {
    return T::columns(reinterpret_cast<const float*>(x_sums) + i * kTogether);
  };
  const auto start = [&](typename T::Ints(&dots)[kVectors]) __attribute__((always_inline)) {
    constexpr bool kZeros = kForm.sums == Sums::kZero && T::template kUnsigned<multiplied_bits(kLayout)>;
    for (int i = 0; i < kVectors; ++i) dots[i] = kZeros ? T::column_ints(x_sums + 4 * i * kTogether) : T::zero_ints();
  };
  Floats sums[kVectors];
  for (Floats& sum : sums) sum = T::zero_floats();

  if constexpr (kRecord.block == kBlock) {
    for (int64_t b = 0; b < n_in / kBlock; ++b) {
      if constexpr (kColumns <= 2) T::template prefetch<kValueBytes>(values);
      typename T::Ints dots[kVectors];
      start(dots);
      T::template multiply<kFormat, 0, kBlockSteps>(values, x, dots);
      const Floats scale = scale_of_block<T, kLayout.scales>(record, first_row);
      for (int i = 0; i < kVectors; ++i) {
        const Floats scaled = T::mul(T::to_floats(dots[i]), T::columns(x_scales + i * kTogether));
        sums[i] = T::fma(scaled, scale, sums[i]);
      }
      if constexpr (kRecord.minimum) {
        const Floats minimum = T::halves(record + 32 + 2 * first_row);
        for (int i = 0; i < kVectors; ++i) sums[i] = T::fma(minimum, sum_at(i), sums[i]);
      }
      values += kValueBytes;
      record += kRecord.bytes;
      x += kBlock * width;
      x_scales += width;
      x_sums += 4 * width;
    }
  } else {
    constexpr int kSubs = static_cast<int>(kBlock) / kRecord.sub_block, kSteps = kBlockSteps / kSubs;
    for (int64_t b = 0; b < n_in / kBlock; b += 8) {
      const Floats d = T::halves(record + 2 * first_row);
      Floats parts[kVectors];
      for (Floats& part : parts) part = T::zero_floats();
      for (int64_t j = 0; j < 8; ++j) {
        if constexpr (kColumns <= 2) T::template prefetch<kValueBytes>(values);
        unrolled<0, kSubs>([&]<int kSub>() __attribute__((always_inline)) {
          typename T::Ints dots[kVectors];
          start(dots);
          T::template multiply<kFormat, kSub * kSteps, (kSub + 1) * kSteps>(values, x, dots);
          const Floats scale = scale_of_sub_block<T, kLayout.scales>(d, record, j * kSubs + kSub, first_row);
          for (int i = 0; i < kVectors; ++i) parts[i] = T::fma(T::to_floats(dots[i]), scale, parts[i]);
          if constexpr (kRecord.minimum) {
            // Negating a factor is exact: this is the reference's fma of −(d_min · minimum).
            const Floats minimum = minimum_of_sub_block<T, kLayout.scales>(record, j * kSubs + kSub, first_row);
            for (int i = 0; i < kVectors; ++i) parts[i] = T::fnma(minimum, sum_at(i), parts[i]);
          }
          x_sums += 4 * width;
        });
        values += kValueBytes;
        x += kBlock * width;
      }
      for (int i = 0; i < kVectors; ++i) sums[i] = T::fma(parts[i], T::columns(x_scales + i * kTogether), sums[i]);
      record += kRecord.bytes;
      x_scales += width;
    }
  }
  for (int i = 0; i < kVectors; ++i)
    T::store(out + (column + i * kTogether) * out_stride + first_row, out_stride, sums[i]);
}

// Columns [column, width) in tiles of kColumns or fewer.
template <typename Isa, PackedFormat kFormat, int kColumns = Isa::kMostColumns>
void tiled_product(const std::byte* group, int64_t n_in, const std::byte* panel, int width, float* out,
                   int64_t out_stride, int column = 0) {
  if constexpr (Isa::has_tile(kColumns)) {
    using T = typename Isa::template Tile<kColumns>;
    constexpr int kWidth = Isa::kWholePanels ? kColumns : 0;
    for (; column + kColumns <= width; column += kColumns)
      for (int64_t row = 0; row < kGroupRows; row += T::kRows)
        tile<T, kFormat, kColumns, kWidth>(group, row, n_in, panel, width, column, out, out_stride);
  }
  if constexpr (kColumns > 1)
    tiled_product<Isa, kFormat, kColumns - 1>(group, n_in, panel, width, out, out_stride, column);
}

}  // namespace
}  // namespace hocket
