// compute/kernels/format.h: how weights and activations lie in memory for our own products.
//
// Weights. Rows stand in groups of 16, so that a vector holds the same place of all of them and no sum ever runs across
// a vector. A group holds its values, block after block of 32 k, and then its scales:
//
//   values of a block   steps of 4 k; in a vector of 64 bytes byte 4·row + i belongs to k = 4s + i of step s. A value
//   of
//                       8 bits is a byte of the vector of its step. Of fewer bits the lowest 4 (of 2 and 3 bits: 2)
//                       stand together, two (four) steps to a vector, the first in the lowest bits; then what is left
//                       over, in the same way: eight steps to a vector of fifth (third) bits, four to one of fifth and
//                       sixth bits. low_field() and high_field() say where.
//   scales              see Scales. Half-precision numbers stay as they are in the file.
//
// Floats (F32, F16, BF16) have neither blocks nor scales: the numbers of the 16 rows for k = 0, those for k = 1, ….
//
// The value of a weight is scale · (stored − zero) + minimum, where formats with codes look up what is stored. Nothing
// is rounded: it is bit for bit what ggml's dequantisation gives.
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

enum class PackedFormat : uint8_t {
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  kF32,
  kF16,
  kBF16
};
constexpr std::size_t kPackedFormats = 16;

constexpr int64_t kGroupRows = 16;
constexpr int64_t kBlock = 32;        // k of a block
constexpr int kBlockSteps = 8;        // of 4 k
constexpr int64_t kSuperBlock = 256;  // of K formats and IQ4_XS
constexpr int64_t kPanelColumns = 12;

enum class Scales : uint8_t {
  kHalf,         // for each block: f16 scale[16]
  kHalfMinimum,  // for each block: f16 scale[16], f16 minimum[16]
  kPower,        // for each block: u8 exponent[16]; the scale is 2^(exponent − 128)
  // For each super-block: f16 d[16], f16 d_min[16], u8 scale[8][16], u8 minimum[8][16]; a block's scale is d · scale,
  // its minimum −d_min · minimum.
  kSuperMinimum,
  kSuperMinimum16,  // the same for 16 k each, u8 both[16][16]: the scale in the low nibble, the minimum in the high one
  kSuper16,         // for each super-block: f16 d[16], i8 scale[16][16]; scales are for 16 k each
  kSuper32,         // for each super-block: f16 d[16], i8 scale[8][16]; scales are for 32 k each
  kNone,            // of floats
};

struct ScaleRecord {
  int64_t block;  // k that a record covers
  int64_t bytes;  // of a record
  int sub_block;  // k that a scale covers
  bool minimum;   // scales have minima beside them
};

// In the order of Scales.
constexpr ScaleRecord kScaleRecords[] = {
    {kBlock, 32, 32, false},       {kBlock, 64, 32, true},
    {kBlock, 16, 32, false},       {kSuperBlock, 320, 32, true},
    {kSuperBlock, 320, 16, true},  {kSuperBlock, 288, 16, false},
    {kSuperBlock, 160, 32, false}, {1, 0, 1, false},
};

// What a stored value of few bits stands for.
enum class Codes : uint8_t {
  kItself,
  kUneven,  // of IQ4: 16 numbers of 8 bits, closer together near 0
  kFloat4,  // of MXFP4: twice a float of 4 bits (E2M1), which needs 5 bits
};

// The numbers of a code plus the zero of its format.
constexpr uint8_t kUnevenCodes[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
constexpr uint8_t kFloat4Codes[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

struct FormatLayout {
  int bits;  // stored: 2, 3, 4, 5, 6 or 8; 16 and 32 of floats
  int zero;  // what a value of 0 stands for, negated
  Scales scales;
  Codes codes = Codes::kItself;
};

// In the order of PackedFormat.
constexpr FormatLayout kFormatLayouts[kPackedFormats] = {
    {4, 8, Scales::kHalf},
    {4, 0, Scales::kHalfMinimum},
    {5, 16, Scales::kHalf},
    {5, 0, Scales::kHalfMinimum},
    {8, 128, Scales::kHalf},
    {2, 0, Scales::kSuperMinimum16},
    {3, 4, Scales::kSuper16},
    {4, 0, Scales::kSuperMinimum},
    {5, 0, Scales::kSuperMinimum},
    {6, 32, Scales::kSuper16},
    {4, 128, Scales::kHalf, Codes::kUneven},
    {4, 128, Scales::kSuper32, Codes::kUneven},
    {4, 12, Scales::kPower, Codes::kFloat4},
    {32, 0, Scales::kNone},
    {16, 0, Scales::kNone},
    {16, 0, Scales::kNone},
};

static constexpr const FormatLayout& layout_of(PackedFormat format) {
  return kFormatLayouts[static_cast<std::size_t>(format)];
}

static constexpr const ScaleRecord& record_of(Scales scales) {
  return kScaleRecords[static_cast<std::size_t>(scales)];
}

// Of the numbers that are multiplied.
static constexpr int multiplied_bits(const FormatLayout& layout) {
  return layout.codes == Codes::kUneven ? 8 : layout.codes == Codes::kFloat4 ? 5 : layout.bits;
}

static constexpr int64_t value_bytes(int bits) {  // of a block of a group
  return kBlock * kGroupRows * bits / 8;
}

// Bits of the values of a step: in the vector at byte `at` of a block, from bit `shift` of each byte on.
struct Field {
  int bits;
  int at;
  int shift;
};

static constexpr Field low_field(int bits, int step) {
  const int low = bits == 8 ? 8 : bits >= 4 ? 4 : 2, steps = 8 / low;
  return {low, 64 * (step / steps), step % steps * low};
}

// The bits above those; none: 0 bits.
static constexpr Field high_field(int bits, int step) {
  const int low = low_field(bits, step).bits, high = bits - low;
  if (high == 0) return {0, 0, 0};
  const int steps = 8 / high;
  return {high, static_cast<int>(value_bytes(low)) + 64 * (step / steps), step % steps * high};
}

static constexpr int64_t group_value_bytes(const FormatLayout& layout, int64_t n_in) {
  return n_in * kGroupRows * layout.bits / 8;
}

static constexpr int64_t group_bytes(const FormatLayout& layout, int64_t n_in) {
  const ScaleRecord& record = record_of(layout.scales);
  return (group_value_bytes(layout, n_in) + n_in / record.block * record.bytes + 63) / 64 * 64;
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

static constexpr ActivationForm form_of(const FormatLayout& layout) {
  const ScaleRecord& record = record_of(layout.scales);
  return {static_cast<int>(record.block), record.sub_block, layout.zero,
          !record.minimum          ? Sums::kZero
          : record.block == kBlock ? Sums::kScaled
                                   : Sums::kPlain};
}

static constexpr int64_t column_bytes(const ActivationForm& form, int64_t n_in) {
  if (form.scale_block == 1) return 4 * n_in;
  return n_in + 4 * (n_in / form.scale_block) + 4 * (n_in / form.sum_block);
}

// Offsets in a panel of `width` columns.
static constexpr int64_t panel_scales_at(int64_t n_in, int64_t width) {
  return n_in * width;
}
static constexpr int64_t panel_sums_at(const ActivationForm& form, int64_t n_in, int64_t width) {
  return width * (n_in + 4 * (n_in / form.scale_block));
}

}  // namespace hocket
