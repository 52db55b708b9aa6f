#include "compute/kernels/pack.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "compute/kernels/half.h"
#include "compute/kernels/stored.h"

namespace hocket {
namespace {

// Where ggml's blocks hold what is packed, in bytes; 0 where there is none. Scales of few bits are read by
// place_scales().
struct Source {
  PackedFormat format;
  ggml_type type;
  int block;   // bytes of 32 or 256 k
  int values;  // the lowest bits
  int high;    // the bits above them
  int d;       // scales of half precision, or exponents
  int d_min;   // minima
};

// In the order of PackedFormat.
constexpr Source kSources[kPackedFormats] = {
    {PackedFormat::kQ4_0, GGML_TYPE_Q4_0, 18, 2, 0, 0, 0},
    {PackedFormat::kQ4_1, GGML_TYPE_Q4_1, 20, 4, 0, 0, 2},
    {PackedFormat::kQ5_0, GGML_TYPE_Q5_0, 22, 6, 2, 0, 0},
    {PackedFormat::kQ5_1, GGML_TYPE_Q5_1, 24, 8, 4, 0, 2},
    {PackedFormat::kQ8_0, GGML_TYPE_Q8_0, 34, 2, 0, 0, 0},
    {PackedFormat::kQ2_K, GGML_TYPE_Q2_K, 84, 16, 0, 80, 82},
    {PackedFormat::kQ3_K, GGML_TYPE_Q3_K, 110, 32, 0, 108, 0},
    {PackedFormat::kQ4_K, GGML_TYPE_Q4_K, 144, 16, 0, 0, 2},
    {PackedFormat::kQ5_K, GGML_TYPE_Q5_K, 176, 48, 16, 0, 2},
    {PackedFormat::kQ6_K, GGML_TYPE_Q6_K, 210, 0, 128, 208, 0},
    {PackedFormat::kIQ4_NL, GGML_TYPE_IQ4_NL, 18, 2, 0, 0, 0},
    {PackedFormat::kIQ4_XS, GGML_TYPE_IQ4_XS, 136, 8, 0, 0, 0},
    {PackedFormat::kMXFP4, GGML_TYPE_MXFP4, 17, 1, 0, 0, 0},
    {PackedFormat::kF32, GGML_TYPE_F32, 0, 0, 0, 0, 0},
    {PackedFormat::kF16, GGML_TYPE_F16, 0, 0, 0, 0, 0},
    {PackedFormat::kBF16, GGML_TYPE_BF16, 0, 0, 0, 0, 0},
};

const Source& source_of(PackedFormat format) {
  return kSources[static_cast<std::size_t>(format)];
}

// Four stored values side by side.
using Word = uint32_t;

Word word_at(const void* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// 32 stored values of a row into a block of a group.
template <int kBits>
void place_bits(const uint8_t (&values)[32], int64_t row, std::byte* block) {
  Word words[kBits] = {};  // of each vector
  for (int s = 0; s < kBlockSteps; ++s) {
    const Field low = low_field(kBits, s), high = high_field(kBits, s);
    const Word word = word_at(values + 4 * s);
    words[low.at / 64] |= (word & 0x01010101u * ((1u << low.bits) - 1)) << low.shift;
    if (high.bits > 0) words[high.at / 64] |= (word >> low.bits & 0x01010101u * ((1u << high.bits) - 1)) << high.shift;
  }
  for (int v = 0; v < kBits; ++v) std::memcpy(block + 64 * v + 4 * row, words + v, sizeof(Word));
}

void place_values(int bits, const uint8_t (&values)[32], int64_t row, std::byte* block) {
  switch (bits) {
    case 2:
      return place_bits<2>(values, row, block);
    case 3:
      return place_bits<3>(values, row, block);
    case 4:
      return place_bits<4>(values, row, block);
    case 5:
      return place_bits<5>(values, row, block);
    case 6:
      return place_bits<6>(values, row, block);
    default:
      return place_bits<8>(values, row, block);
  }
}

// Low nibbles are k 0..15, high ones 16..31.
void split_nibbles(const uint8_t* bytes, uint8_t (&values)[32]) {
  for (int i = 0; i < 16; ++i) {
    values[i] = bytes[i] & 0xF;
    values[i + 16] = bytes[i] >> 4;
  }
}

// Values k take kBits bits of byte k, from bit `shift` on, into their bits from kTo on; above what they have.
template <int kBits, int kTo>
void take_bits(const uint8_t* bytes, int shift, uint8_t (&values)[32]) {
  for (int k = 0; k < 32; ++k) {
    const int bits = bytes[k] >> shift & ((1 << kBits) - 1);
    values[k] = static_cast<uint8_t>(kTo == 0 ? bits : values[k] | bits << kTo);
  }
}

// The stored values of block `b` of a row in ggml's format.
void read_values(PackedFormat format, const uint8_t* row, int64_t b, uint8_t (&values)[32]) {
  const Source& source = source_of(format);
  const bool super = record_of(layout_of(format).scales).block == kSuperBlock;
  const int j = super ? static_cast<int>(b % 8) : 0, half = j / 4, quarter = j % 4;
  const uint8_t* block = row + source.block * (super ? b / 8 : b);
  const uint8_t *low = block + source.values, *high = block + source.high;
  switch (format) {
    case PackedFormat::kQ4_0:
    case PackedFormat::kQ4_1:
    case PackedFormat::kIQ4_NL:
    case PackedFormat::kMXFP4:
      return split_nibbles(low, values);
    case PackedFormat::kQ5_0:
    case PackedFormat::kQ5_1:
      split_nibbles(low, values);
      // Bit k of the word is the fifth bit of value k.
      for (int k = 0; k < 32; ++k) values[k] = static_cast<uint8_t>(values[k] | (high[k / 8] >> (k % 8) & 1) << 4);
      return;
    case PackedFormat::kQ8_0:  // signed
      for (int k = 0; k < 32; ++k) values[k] = low[k] ^ 0x80;
      return;
    case PackedFormat::kQ2_K:  // 32 bytes are two bits each of four blocks
      return take_bits<2, 0>(low + 32 * half, 2 * quarter, values);
    case PackedFormat::kQ3_K:  // the same, and 32 bytes with a bit of each of the eight
      take_bits<2, 0>(low + 32 * half, 2 * quarter, values);
      return take_bits<1, 2>(high, j, values);
    case PackedFormat::kQ4_K:  // 32 bytes are the nibbles of two blocks
      return take_bits<4, 0>(low + 32 * (j / 2), 4 * (j % 2), values);
    case PackedFormat::kQ5_K:
      take_bits<4, 0>(low + 32 * (j / 2), 4 * (j % 2), values);
      return take_bits<1, 4>(high, j, values);
    case PackedFormat::kQ6_K:
      take_bits<4, 0>(low + 64 * half + 32 * (quarter % 2), 4 * (quarter / 2), values);
      return take_bits<2, 4>(high + 32 * half, 2 * quarter, values);
    case PackedFormat::kIQ4_XS:
      return split_nibbles(low + 16 * j, values);
    case PackedFormat::kF32:
    case PackedFormat::kF16:
    case PackedFormat::kBF16:
      CHECK(false);  // have no blocks
  }
}

// Eight scales and eight minima of 6 bits: the first four of each whole in bytes 0..3 and 4..7, whose top bits belong
// to the last four, whose low nibbles are in bytes 8..11.
struct SixBits {
  uint8_t scale, minimum;
};
SixBits six_bits(const uint8_t* bytes, int j) {
  const int scale = j < 4 ? bytes[j] & 63 : (bytes[j + 4] & 0xF) | bytes[j - 4] >> 6 << 4;
  const int minimum = j < 4 ? bytes[j + 4] & 63 : bytes[j + 4] >> 4 | bytes[j] >> 6 << 4;
  return {static_cast<uint8_t>(scale), static_cast<uint8_t>(minimum)};
}

// Scale j of 6 bits less 32. Q3_K: 16 low nibbles, those of j and j + 8 in a byte, then the upper two bits of j, j + 4,
// j + 8 and j + 12 in a byte. IQ4_XS: upper bits first, two bits a scale, then low nibbles in order.
uint8_t centred_six_bits(PackedFormat format, const uint8_t* block, int j) {
  int low, high;
  if (format == PackedFormat::kQ3_K) {
    const uint8_t* bytes = block + 96;
    low = bytes[j % 8] >> (j / 8 * 4) & 0xF;
    high = bytes[8 + j % 4] >> (j / 4 * 2) & 3;
  } else {
    low = block[4 + j / 2] >> (j % 2 * 4) & 0xF;
    high = block[2 + j / 4] >> (j % 4 * 2) & 3;
  }
  return static_cast<uint8_t>((low | high << 4) - 32);
}

void place_scales(PackedFormat format, const uint8_t* row, int64_t at_record, int64_t place, std::byte* record) {
  const Source& source = source_of(format);
  const uint8_t* block = row + source.block * at_record;
  const auto half = [&](int from, int64_t to) { std::memcpy(record + to + 2 * place, block + from, 2); };
  const auto byte = [&](uint8_t from, int64_t to) { record[to + place] = static_cast<std::byte>(from); };
  switch (layout_of(format).scales) {
    case Scales::kHalf:
      return half(source.d, 0);
    case Scales::kHalfMinimum:
      half(source.d, 0);
      return half(source.d_min, 32);
    case Scales::kPower:
      return byte(block[source.d], 0);
    case Scales::kSuperMinimum:
      half(source.d, 0);
      half(source.d_min, 32);
      for (int j = 0; j < 8; ++j) {
        const SixBits six = six_bits(block + 4, j);
        byte(six.scale, 64 + 16 * j);
        byte(six.minimum, 192 + 16 * j);
      }
      return;
    case Scales::kSuperMinimum16:
      half(source.d, 0);
      half(source.d_min, 32);
      for (int j = 0; j < 16; ++j) byte(block[j], 64 + 16 * j);
      return;
    case Scales::kSuper16:
      half(source.d, 0);
      for (int j = 0; j < 16; ++j)
        byte(format == PackedFormat::kQ6_K ? block[192 + j] : centred_six_bits(format, block, j), 32 + 16 * j);
      return;
    case Scales::kSuper32:
      half(source.d, 0);
      for (int j = 0; j < 8; ++j) byte(centred_six_bits(format, block, j), 32 + 16 * j);
      return;
    case Scales::kNone:
      return;
  }
}

template <typename T>
void place_floats(const std::byte* rows, int64_t n_rows, int64_t n_in, std::byte* group) {
  for (int64_t row = 0; row < n_rows; ++row)
    for (int64_t k = 0; k < n_in; ++k)
      std::memcpy(group + static_cast<std::size_t>(k * kGroupRows + row) * sizeof(T),
                  rows + static_cast<std::size_t>(row * n_in + k) * sizeof(T), sizeof(T));
}

float float_at(PackedFormat format, const std::byte* at) {
  if (format == PackedFormat::kF32) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return format == PackedFormat::kF16 ? half_to_float(bits) : bfloat_to_float(bits);
}

}  // namespace

ggml_type ggml_type_of(PackedFormat format) {
  return source_of(format).type;
}

std::optional<PackedFormat> packed_format(ggml_type type) {
  for (const Source& source : kSources)
    if (source.type == type) return source.format;
  return std::nullopt;
}

void pack_group(PackedFormat format, const std::byte* rows, int64_t n_rows, int64_t n_in, std::byte* group) {
  const FormatLayout& layout = layout_of(format);
  const ScaleRecord& record = record_of(layout.scales);
  CHECK(n_rows >= 1 && n_rows <= kGroupRows && n_in % record.block == 0);
  if (n_rows < kGroupRows) std::memset(group, 0, static_cast<std::size_t>(group_bytes(layout, n_in)));
  if (layout.scales == Scales::kNone)
    return layout.bits == 32 ? place_floats<float>(rows, n_rows, n_in, group)
                             : place_floats<uint16_t>(rows, n_rows, n_in, group);
  const std::size_t row_size = ggml_row_size(ggml_type_of(format), n_in);
  std::byte* scales = group + group_value_bytes(layout, n_in);
  for (int64_t row = 0; row < n_rows; ++row) {
    const auto* from = reinterpret_cast<const uint8_t*>(rows) + static_cast<std::size_t>(row) * row_size;
    for (int64_t b = 0; b < n_in / kBlock; ++b) {
      uint8_t values[32];
      read_values(format, from, b, values);
      place_values(layout.bits, values, row, group + b * value_bytes(layout.bits));
    }
    for (int64_t i = 0; i < n_in / record.block; ++i) place_scales(format, from, i, row, scales + i * record.bytes);
  }
}

void unpack_row(PackedFormat format, const std::byte* group, int64_t row, int64_t n_in, float* out) {
  const FormatLayout& layout = layout_of(format);
  const ScaleRecord& record = record_of(layout.scales);
  if (layout.scales == Scales::kNone) {
    for (int64_t k = 0; k < n_in; ++k) out[k] = float_at(format, group + (k * kGroupRows + row) * layout.bits / 8);
    return;
  }
  const std::byte* scales = group + group_value_bytes(layout, n_in);
  for (int64_t k0 = 0; k0 < n_in; k0 += record.sub_block) {
    const auto* block = reinterpret_cast<const uint8_t*>(group + k0 / kBlock * value_bytes(layout.bits));
    const ScaleAndMinimum of =
        scale_at(layout.scales, scales + k0 / record.block * record.bytes, k0 % record.block / record.sub_block, row);
    for (int64_t k = k0; k < k0 + record.sub_block; ++k) {
      const auto centred = static_cast<float>(stored_value(layout, block, row, k % kBlock) - layout.zero);
      out[k] = record.minimum ? centred * of.scale + of.minimum : centred * of.scale;
    }
  }
}

}  // namespace hocket
