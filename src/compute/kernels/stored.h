// compute/kernels/stored.h: what stands in a packed group, one number at a time, on every CPU: for the packing and for
// the reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compute/kernels/format.h"
#include "compute/kernels/half.h"

namespace hocket {

static inline int bits_of(const uint8_t* block, const Field& field, int64_t byte) {
  return block[field.at + byte] >> field.shift & ((1 << field.bits) - 1);
}

// The number that is multiplied for row `row` and k (0..31) of a block: still with its zero.
static inline int stored_value(const FormatLayout& layout, const uint8_t* block, int64_t row, int64_t k) {
  const int step = static_cast<int>(k / 4);
  const int64_t byte = 4 * row + k % 4;
  const Field low = low_field(layout.bits, step), high = high_field(layout.bits, step);
  int value = bits_of(block, low, byte);
  if (high.bits > 0) value |= bits_of(block, high, byte) << low.bits;
  if (layout.codes == Codes::kUneven) return kUnevenCodes[value];
  return layout.codes == Codes::kFloat4 ? kFloat4Codes[value] : value;
}

struct ScaleAndMinimum {
  float scale;
  float minimum;  // 0 without one
};

// Of row `row` and sub-block `sub` of a record. Both are exact: products of half-precision numbers and small integers.
static inline ScaleAndMinimum scale_at(Scales scales, const std::byte* record, int64_t sub, int64_t row) {
  const auto half = [&](int64_t at) {
    uint16_t bits;
    std::memcpy(&bits, record + at + 2 * row, sizeof bits);
    return half_to_float(bits);
  };
  const auto byte = [&](int64_t at) { return std::to_integer<uint8_t>(record[at + row]); };
  switch (scales) {
    case Scales::kHalf:
      return {half(0), 0};
    case Scales::kHalfMinimum:
      return {half(0), half(32)};
    case Scales::kPower:
      return {power_to_float(byte(0)), 0};
    case Scales::kSuperMinimum:
      return {half(0) * static_cast<float>(byte(64 + 16 * sub)), -half(32) * static_cast<float>(byte(192 + 16 * sub))};
    case Scales::kSuperMinimum16: {
      const uint8_t both = byte(64 + 16 * sub);
      return {half(0) * static_cast<float>(both & 0xF), -half(32) * static_cast<float>(both >> 4)};
    }
    case Scales::kSuper16:
    case Scales::kSuper32:
      return {half(0) * static_cast<float>(static_cast<int8_t>(byte(32 + 16 * sub))), 0};
    case Scales::kNone:
      break;
  }
  return {1, 0};
}

}  // namespace hocket
