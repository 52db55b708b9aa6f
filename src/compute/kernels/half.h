// compute/kernels/half.h: shorter kinds of floats to float, exactly, on every CPU.
#pragma once

#include <cstdint>
#include <cstring>

namespace hocket {

inline float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16, exponent = half >> 10 & 0x1Fu;
  uint32_t mantissa = half & 0x3FFu, bits;
  if (exponent == 0x1Fu) {
    bits = sign | 0x7F800000u | mantissa << 13;
  } else if (exponent != 0) {
    bits = sign | (exponent + 112u) << 23 | mantissa << 13;
  } else {
    // A subnormal is a multiple of 2⁻²⁴, which a float holds exactly.
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    std::memcpy(&bits, &value, sizeof bits);
    bits |= sign;
  }
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline float bfloat_to_float(uint16_t upper) {
  const uint32_t bits = static_cast<uint32_t>(upper) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// 2^(exponent − 128), of scales that are a byte of exponent alone (E8M0).
inline float power_to_float(uint8_t exponent) {
  const uint32_t bits = exponent < 2 ? 0x00200000u << exponent : (exponent - 1u) << 23;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace hocket
