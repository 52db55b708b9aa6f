#include "compute/kernels/pack.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "compute/kernels/half.h"

namespace hocket {
namespace {

struct TypeRow {
  ggml_type type;
  PackedFormat format;
};
// In the order of PackedFormat.
constexpr TypeRow kTypes[kPackedFormats] = {
    {GGML_TYPE_Q4_0, PackedFormat::kQ4_0}, {GGML_TYPE_Q4_1, PackedFormat::kQ4_1}, {GGML_TYPE_Q5_0, PackedFormat::kQ5_0},
    {GGML_TYPE_Q5_1, PackedFormat::kQ5_1}, {GGML_TYPE_Q8_0, PackedFormat::kQ8_0}, {GGML_TYPE_Q4_K, PackedFormat::kQ4_K},
    {GGML_TYPE_Q5_K, PackedFormat::kQ5_K}, {GGML_TYPE_Q6_K, PackedFormat::kQ6_K}, {GGML_TYPE_F32, PackedFormat::kF32},
    {GGML_TYPE_F16, PackedFormat::kF16},   {GGML_TYPE_BF16, PackedFormat::kBF16},
};

// Four stored values side by side.
using Word = uint32_t;

Word word_at(const uint8_t* values, int step) {
  Word word;
  std::memcpy(&word, values + 4 * step, sizeof word);
  return word;
}

void put(std::byte* at, Word word) {
  std::memcpy(at, &word, sizeof word);
}

// 32 stored values of a row into a block of a group.
void place_values(int bits, const uint8_t (&values)[32], int64_t row, std::byte* block) {
  std::byte* at = block + 4 * row;
  if (bits == 8) {
    for (int s = 0; s < 8; ++s) put(at + 64 * s, word_at(values, s));
    return;
  }
  for (int v = 0; v < 4; ++v)
    put(at + 64 * v, (word_at(values, 2 * v) & 0x0F0F0F0Fu) | (word_at(values, 2 * v + 1) & 0x0F0F0F0Fu) << 4);
  if (bits == 5) {
    Word plane = 0;
    for (int s = 0; s < 8; ++s) plane |= (word_at(values, s) >> 4 & 0x01010101u) << s;
    put(at + 256, plane);
  } else if (bits == 6) {
    for (int p = 0; p < 2; ++p) {
      Word plane = 0;
      for (int s = 0; s < 4; ++s) plane |= (word_at(values, 4 * p + s) >> 4 & 0x03030303u) << (2 * s);
      put(at + 256 + 64 * p, plane);
    }
  }
}

// Low nibbles are k 0..15, high ones 16..31.
void split_nibbles(const uint8_t* bytes, uint8_t (&values)[32]) {
  for (int i = 0; i < 16; ++i) {
    values[i] = bytes[i] & 0xF;
    values[i + 16] = bytes[i] >> 4;
  }
}

// Bit k of the word is the fifth bit of value k.
void add_fifth_bits(const uint8_t* bytes, uint8_t (&values)[32]) {
  for (int k = 0; k < 32; ++k) values[k] = static_cast<uint8_t>(values[k] | (bytes[k / 8] >> (k % 8) & 1) << 4);
}

// The stored values of block `b` of a row in ggml's format.
void read_values(PackedFormat format, const uint8_t* row, int64_t b, uint8_t (&values)[32]) {
  switch (format) {
    case PackedFormat::kQ4_0:  // f16 d, 16 bytes
      return split_nibbles(row + 18 * b + 2, values);
    case PackedFormat::kQ4_1:  // f16 d, f16 m, 16 bytes
      return split_nibbles(row + 20 * b + 4, values);
    case PackedFormat::kQ5_0:  // f16 d, 4 bytes of fifth bits, 16 bytes
      split_nibbles(row + 22 * b + 6, values);
      return add_fifth_bits(row + 22 * b + 2, values);
    case PackedFormat::kQ5_1:  // f16 d, f16 m, 4 bytes of fifth bits, 16 bytes
      split_nibbles(row + 24 * b + 8, values);
      return add_fifth_bits(row + 24 * b + 4, values);
    case PackedFormat::kQ8_0:  // f16 d, 32 signed bytes
      for (int k = 0; k < 32; ++k) values[k] = row[34 * b + 2 + k] ^ 0x80;
      return;
    case PackedFormat::kQ4_K:    // f16 d, f16 d_min, 12 bytes of scales, 128 bytes: nibbles of two blocks each
    case PackedFormat::kQ5_K: {  // the same with 32 bytes of fifth bits before the nibbles, a bit a block
      const bool five = format == PackedFormat::kQ5_K;
      const int64_t j = b % 8;
      const uint8_t* super = row + (five ? 176 : 144) * (b / 8);
      const uint8_t* nibbles = super + (five ? 48 : 16) + 32 * (j / 2);
      const int shift = static_cast<int>(4 * (j % 2));
      for (int k = 0; k < 32; ++k) values[k] = nibbles[k] >> shift & 0xF;
      if (five)
        for (int k = 0; k < 32; ++k) values[k] = static_cast<uint8_t>(values[k] | (super[16 + k] >> j & 1) << 4);
      return;
    }
    case PackedFormat::kQ6_K: {  // 128 bytes of low nibbles, 64 of high bits, 16 signed scales, f16 d
      const int64_t j = b % 8, half = j / 4, quarter = j % 4;
      const uint8_t* super = row + 210 * (b / 8);
      const uint8_t* low = super + 64 * half + 32 * (quarter % 2);
      const uint8_t* high = super + 128 + 32 * half;
      const int low_shift = static_cast<int>(4 * (quarter / 2)), high_shift = static_cast<int>(2 * quarter);
      for (int k = 0; k < 32; ++k)
        values[k] = static_cast<uint8_t>((low[k] >> low_shift & 0xF) | (high[k] >> high_shift & 3) << 4);
      return;
    }
    case PackedFormat::kF32:
    case PackedFormat::kF16:
    case PackedFormat::kBF16:
      CHECK(false);  // have no blocks
  }
}

void place_scales(PackedFormat format, const uint8_t* row, int64_t at_record, int64_t place, std::byte* record) {
  const auto half = [&](const uint8_t* from, int64_t to) { std::memcpy(record + to + 2 * place, from, 2); };
  const auto byte = [&](uint8_t from, int64_t to) { record[to + place] = static_cast<std::byte>(from); };
  switch (layout_of(format).scales) {
    case Scales::kHalf:
      return half(row + (format == PackedFormat::kQ4_0 ? 18 : format == PackedFormat::kQ5_0 ? 22 : 34) * at_record, 0);
    case Scales::kHalfMinimum: {
      const uint8_t* block = row + (format == PackedFormat::kQ4_1 ? 20 : 24) * at_record;
      half(block, 0);
      return half(block + 2, 32);
    }
    case Scales::kSuperMinimum: {
      const uint8_t* super = row + (format == PackedFormat::kQ4_K ? 144 : 176) * at_record;
      half(super, 0);
      half(super + 2, 32);
      // 8 scales and 8 minima of 6 bits: the first four of each whole in bytes 0..3 and 4..7, whose top bits belong to
      // the last four, whose low nibbles are in bytes 8..11.
      const uint8_t* six = super + 4;
      for (int j = 0; j < 8; ++j) {
        const int scale = j < 4 ? six[j] & 63 : (six[j + 4] & 0xF) | six[j - 4] >> 6 << 4;
        const int minimum = j < 4 ? six[j + 4] & 63 : six[j + 4] >> 4 | six[j] >> 6 << 4;
        byte(static_cast<uint8_t>(scale), 64 + 16 * j);
        byte(static_cast<uint8_t>(minimum), 192 + 16 * j);
      }
      return;
    }
    case Scales::kSuper16: {
      const uint8_t* super = row + 210 * at_record;
      half(super + 208, 0);
      for (int j = 0; j < 16; ++j) byte(super[192 + j], 32 + 16 * j);
      return;
    }
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
  return kTypes[static_cast<std::size_t>(format)].type;
}

std::optional<PackedFormat> packed_format(ggml_type type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type) return row.format;
  return std::nullopt;
}

void pack_group(PackedFormat format, const std::byte* rows, int64_t n_rows, int64_t n_in, std::byte* group) {
  const FormatLayout& layout = layout_of(format);
  CHECK(n_rows >= 1 && n_rows <= kGroupRows && n_in % scales_block(layout.scales) == 0);
  if (n_rows < kGroupRows) std::memset(group, 0, static_cast<std::size_t>(group_bytes(layout, n_in)));
  if (layout.scales == Scales::kNone)
    return layout.bits == 32 ? place_floats<float>(rows, n_rows, n_in, group)
                             : place_floats<uint16_t>(rows, n_rows, n_in, group);
  const std::size_t row_size = ggml_row_size(ggml_type_of(format), n_in);
  std::byte* scales = group + group_value_bytes(layout, n_in);
  const int64_t n_records = n_in / scales_block(layout.scales);
  for (int64_t row = 0; row < n_rows; ++row) {
    const auto* from = reinterpret_cast<const uint8_t*>(rows) + static_cast<std::size_t>(row) * row_size;
    for (int64_t b = 0; b < n_in / kBlock; ++b) {
      uint8_t values[32];
      read_values(format, from, b, values);
      place_values(layout.bits, values, row, group + b * value_bytes(layout.bits));
    }
    for (int64_t i = 0; i < n_records; ++i)
      place_scales(format, from, i, row, scales + i * scales_bytes(layout.scales));
  }
}

void unpack_row(PackedFormat format, const std::byte* group, int64_t row, int64_t n_in, float* out) {
  const FormatLayout& layout = layout_of(format);
  if (layout.scales == Scales::kNone) {
    for (int64_t k = 0; k < n_in; ++k) out[k] = float_at(format, group + (k * kGroupRows + row) * layout.bits / 8);
    return;
  }
  const std::byte* scales = group + group_value_bytes(layout, n_in);
  const auto half = [&](const std::byte* at) {
    uint16_t bits;
    std::memcpy(&bits, at + 2 * row, sizeof bits);
    return half_to_float(bits);
  };
  for (int64_t k = 0; k < n_in; ++k) {
    const auto* block = reinterpret_cast<const uint8_t*>(group + k / kBlock * value_bytes(layout.bits));
    const int64_t step = k % kBlock / 4, byte = 4 * row + k % 4;
    int value = layout.bits == 8 ? block[64 * step + byte] : block[64 * (step / 2) + byte] >> (4 * (step % 2)) & 0xF;
    if (layout.bits == 5) value |= (block[256 + byte] >> step & 1) << 4;
    if (layout.bits == 6) value |= (block[256 + 64 * (step / 4) + byte] >> (2 * (step % 4)) & 3) << 4;
    const auto centred = static_cast<float>(value - layout.zero);
    const std::byte* record = scales + k / scales_block(layout.scales) * scales_bytes(layout.scales);
    const int64_t j = k % kSuperBlock / kBlock;
    switch (layout.scales) {
      case Scales::kHalf:
        out[k] = centred * half(record);
        break;
      case Scales::kHalfMinimum:
        out[k] = centred * half(record) + half(record + 32);
        break;
      case Scales::kSuperMinimum: {
        const float scale = half(record) * static_cast<float>(std::to_integer<uint8_t>(record[64 + 16 * j + row]));
        const float minimum =
            half(record + 32) * static_cast<float>(std::to_integer<uint8_t>(record[192 + 16 * j + row]));
        out[k] = scale * centred - minimum;
        break;
      }
      case Scales::kSuper16: {
        const auto scale = static_cast<int8_t>(record[32 + 16 * (k % kSuperBlock / 16) + row]);
        out[k] = half(record) * static_cast<float>(scale) * centred;
        break;
      }
      case Scales::kNone:
        break;
    }
  }
}

}  // namespace hocket
