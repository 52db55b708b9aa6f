// compute/kernels/format.h: how weights and activations lie in memory for our own products.
//
// Weights. Rows stand in groups of 16, so that a vector holds the same place of all of them and no sum ever runs across
// a vector. A group holds its values, block after block of 32 k, and then its scales:
//
//   values of a block   steps of 4 k. 8 bits: step s is 64 bytes, byte 4·row + i holds k = 4s + i. Fewer bits: 4
//   vectors
//                       of 64 bytes, vector v with step 2v in its low nibbles and step 2v + 1 in its high ones; then
//                       the fifth bits in one plane (bit s of byte 4·row + i is that of step s), or the fifth and sixth
//                       in two (bits 2(s mod 4) of plane s / 4).
//   scales              see Scales. Half-precision numbers stay as they are in the file.
//
// Floats (F32, F16, BF16) have neither blocks nor scales: the numbers of the 16 rows for k = 0, those for k = 1, ….
//
// The value of a weight is scale · (stored − zero) + minimum. Nothing is rounded: it is bit for bit what ggml's
// dequantisation gives.
//
// Activations. Columns of x, rounded to 8 bits with one scale for each 32 or 256 k, stand in panels of up to 12:
//
//   int8  values[n_in / 32][width][32]
//   float scales[n_in / scale_block][width]
//   4 byte sums[n_in / sum_block][width]     see Sums
//
// For weights that are floats they stay floats: values[n_in][width].
//
// Everything here is of internal linkage: files that are compiled for other instruction sets include it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hocket {

enum class PackedFormat : uint8_t { kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0, kQ4_K, kQ5_K, kQ6_K, kF32, kF16, kBF16 };
constexpr std::size_t kPackedFormats = 11;

constexpr int64_t kGroupRows = 16;
constexpr int64_t kBlock = 32;        // k of a block
constexpr int64_t kSuperBlock = 256;  // of K formats
constexpr int64_t kPanelColumns = 12;

enum class Scales : uint8_t {
  kHalf,         // for each block: f16 scale[16]
  kHalfMinimum,  // for each block: f16 scale[16], f16 minimum[16]
  // For each super-block: f16 d[16], f16 d_min[16], u8 scale[8][16], u8 minimum[8][16]; a block's scale is d · scale,
  // its minimum −d_min · minimum.
  kSuperMinimum,
  kSuper16,  // for each super-block: f16 d[16], i8 scale[16][16]; scales are for 16 k each
  kNone,     // of floats
};

struct FormatLayout {
  int bits;  // 4, 5, 6 or 8; 16 and 32 of floats
  int zero;  // what a stored value of 0 stands for, negated
  Scales scales;
};

constexpr FormatLayout kFormatLayouts[kPackedFormats] = {
    {4, 8, Scales::kHalf},   {4, 0, Scales::kHalfMinimum},  {5, 16, Scales::kHalf},        {5, 0, Scales::kHalfMinimum},
    {8, 128, Scales::kHalf}, {4, 0, Scales::kSuperMinimum}, {5, 0, Scales::kSuperMinimum}, {6, 32, Scales::kSuper16},
    {32, 0, Scales::kNone},  {16, 0, Scales::kNone},        {16, 0, Scales::kNone},
};

constexpr const FormatLayout& layout_of(PackedFormat format) {
  return kFormatLayouts[static_cast<std::size_t>(format)];
}

constexpr int64_t value_bytes(int bits) {  // of a block of a group
  return bits >= 8 ? 64 * bits : 256 + (bits - 4) * 64;
}

constexpr int64_t scales_block(Scales scales) {  // k that one record of scales covers
  return scales == Scales::kNone ? 1 : scales == Scales::kHalf || scales == Scales::kHalfMinimum ? kBlock : kSuperBlock;
}

constexpr int64_t scales_bytes(Scales scales) {  // of one record
  return scales == Scales::kHalf           ? 32
         : scales == Scales::kHalfMinimum  ? 64
         : scales == Scales::kSuperMinimum ? 320
         : scales == Scales::kNone         ? 0
                                           : 288;
}

constexpr int64_t group_value_bytes(const FormatLayout& layout, int64_t n_in) {
  if (layout.scales == Scales::kNone) return n_in * kGroupRows * layout.bits / 8;
  return n_in / kBlock * value_bytes(layout.bits);
}

constexpr int64_t group_bytes(const FormatLayout& layout, int64_t n_in) {
  const int64_t bytes =
      group_value_bytes(layout, n_in) + n_in / scales_block(layout.scales) * scales_bytes(layout.scales);
  return (bytes + 63) / 64 * 64;
}

// What stands beside the values of a block, for the zero or the minimum of the weights.
enum class Sums : uint8_t {
  kZero,    // int32 −zero · Σ values
  kPlain,   // float Σ values
  kScaled,  // float scale · Σ values
};

// What a format wants of the activations; products whose forms are equal can share them.
struct ActivationForm {
  int scale_block;  // 32 or 256; 1: floats, without scales and sums
  int sum_block;    // 32 or 16
  int zero;
  Sums sums;

  constexpr bool operator==(const ActivationForm& other) const {
    return scale_block == other.scale_block && sum_block == other.sum_block && zero == other.zero && sums == other.sums;
  }
};

constexpr ActivationForm form_of(const FormatLayout& layout) {
  if (layout.scales == Scales::kNone) return {1, 1, 0, Sums::kPlain};
  return {static_cast<int>(scales_block(layout.scales)), layout.scales == Scales::kSuper16 ? 16 : 32, layout.zero,
          layout.scales == Scales::kHalfMinimum    ? Sums::kScaled
          : layout.scales == Scales::kSuperMinimum ? Sums::kPlain
                                                   : Sums::kZero};
}

constexpr int64_t column_bytes(const ActivationForm& form, int64_t n_in) {
  if (form.scale_block == 1) return 4 * n_in;
  return n_in + 4 * (n_in / form.scale_block) + 4 * (n_in / form.sum_block);
}

// Offsets in a panel of `width` columns.
constexpr int64_t panel_scales_at(int64_t n_in, int64_t width) {
  return n_in * width;
}
constexpr int64_t panel_sums_at(const ActivationForm& form, int64_t n_in, int64_t width) {
  return width * (n_in + 4 * (n_in / form.scale_block));
}

}  // namespace hocket
