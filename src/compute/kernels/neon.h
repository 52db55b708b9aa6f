// compute/kernels/neon.h: the kernels of 64-bit Arm CPUs, for files that differ in how bytes are multiplied. A vector
// holds 4 rows of 4 k, so that the 16 rows of a group are 4 vectors.
//
// All is of internal linkage, and no template of the standard library is instantiated: the including files are compiled
// for instructions that not every CPU has.
#pragma once

#include <arm_neon.h>

#include "compute/kernels/product_impl.h"
#include "compute/kernels/quantise_impl.h"
#include "compute/kernels/table_impl.h"

namespace hocket {
namespace {

HOCKET_INLINE const uint8_t* bytes_at(const std::byte* at) {
  return reinterpret_cast<const uint8_t*>(at);
}

template <int kBy>  // to the left, within bytes
HOCKET_INLINE uint8x16_t moved(uint8x16_t v) {
  if constexpr (kBy > 0) return vshlq_n_u8(v, kBy);
  if constexpr (kBy < 0) return vshrq_n_u8(v, -kBy);
  return v;
}

// The numbers of step kStep of a block for 4 rows; `values` already points at the first.
template <PackedFormat kFormat, int kStep>
HOCKET_INLINE uint8x16_t step_of(const std::byte* values) {
  constexpr FormatLayout kLayout = layout_of(kFormat);
  constexpr Field kLow = low_field(kLayout.bits, kStep), kHigh = high_field(kLayout.bits, kStep);
  uint8x16_t w = moved<-kLow.shift>(vld1q_u8(bytes_at(values + kLow.at)));
  if constexpr (kLow.shift + kLow.bits < 8) w = vandq_u8(w, vdupq_n_u8((1 << kLow.bits) - 1));
  if constexpr (kHigh.bits > 0) {
    const uint8x16_t mask = vdupq_n_u8(((1 << kHigh.bits) - 1) << kLow.bits);
    const uint8x16_t high = moved<kLow.bits - kHigh.shift>(vld1q_u8(bytes_at(values + kHigh.at)));
    w = vorrq_u8(w, vandq_u8(high, mask));
  }
  if constexpr (kLayout.codes == Codes::kUneven) w = vqtbl1q_u8(vld1q_u8(kUnevenCodes), w);
  if constexpr (kLayout.codes == Codes::kFloat4) w = vqtbl1q_u8(vld1q_u8(kFloat4Codes), w);
  return w;
}

// Scales of 4 rows.
HOCKET_INLINE uint32x4_t words(const std::byte* at) {
  uint32_t four;
  __builtin_memcpy(&four, at, sizeof four);
  return vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(four))));
}

HOCKET_INLINE float32x4_t halves_of(const void* at) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(static_cast<const uint16_t*>(at))));
}

HOCKET_INLINE float32x4_t powers_of(const std::byte* at) {
  const int32x4_t e = vreinterpretq_s32_u32(words(at)), one = vdupq_n_s32(1);
  // Exponents 0 and 1 are subnormal numbers: one bit, which the other side is below.
  const int32x4_t least = vshlq_n_s32(vaddq_s32(vminq_s32(e, one), one), 21);
  return vreinterpretq_f32_s32(vmaxq_s32(vshlq_n_s32(vsubq_s32(e, one), 23), least));
}

// What tiles have in common: kVectors vectors of floats, or of sums, from the scales of 4 · kGroups rows. Layout says
// how the scales of 4 rows stand in its vectors.
template <int kGroups, int kVectors, typename Layout>
struct TileNeon {
  static constexpr int kRows = 4 * kGroups;
  struct Floats {
    float32x4_t v[kVectors];
  };
  struct Ints {
    int32x4_t v[kVectors];
  };

  template <typename F>
  static HOCKET_INLINE Floats of_rows(const F& four_rows) {
    Floats all;
    for (int i = 0; i < kGroups; ++i) Layout::spread(four_rows(4 * i), all.v + i * kVectors / kGroups);
    return all;
  }
  static HOCKET_INLINE Floats halves(const std::byte* at) {
    return of_rows([&](int row) { return halves_of(at + 2 * row); });
  }
  static HOCKET_INLINE Floats unsigned_bytes(const std::byte* at) {
    return of_rows([&](int row) { return vcvtq_f32_u32(words(at + row)); });
  }
  static HOCKET_INLINE Floats signed_bytes(const std::byte* at) {
    return of_rows([&](int row) {
      const int32x4_t high = vreinterpretq_s32_u32(vshlq_n_u32(words(at + row), 24));
      return vcvtq_f32_s32(vshrq_n_s32(high, 24));
    });
  }
  static HOCKET_INLINE Floats low_nibbles(const std::byte* at) {
    return of_rows([&](int row) { return vcvtq_f32_u32(vandq_u32(words(at + row), vdupq_n_u32(0xF))); });
  }
  static HOCKET_INLINE Floats high_nibbles(const std::byte* at) {
    return of_rows([&](int row) { return vcvtq_f32_u32(vshrq_n_u32(words(at + row), 4)); });
  }
  static HOCKET_INLINE Floats powers(const std::byte* at) {
    return of_rows([&](int row) { return powers_of(at + row); });
  }

  template <typename F>
  static HOCKET_INLINE Floats each(const F& f) {
    Floats all;
    for (int i = 0; i < kVectors; ++i) all.v[i] = f(i);
    return all;
  }
  static HOCKET_INLINE Floats columns(const float* at) {
    const float32x4_t one = Layout::columns(at);
    return each([&](int) { return one; });
  }
  static HOCKET_INLINE Ints column_ints(const std::byte* at) {
    const int32x4_t one = Layout::columns(reinterpret_cast<const int32_t*>(at));
    Ints all;
    for (int i = 0; i < kVectors; ++i) all.v[i] = one;
    return all;
  }
  static HOCKET_INLINE Floats to_floats(const Ints& a) {
    return each([&](int i) { return vcvtq_f32_s32(a.v[i]); });
  }
  static HOCKET_INLINE Floats mul(const Floats& a, const Floats& b) {
    return each([&](int i) { return vmulq_f32(a.v[i], b.v[i]); });
  }
  static HOCKET_INLINE Floats fma(const Floats& a, const Floats& b, const Floats& c) {
    return each([&](int i) { return vfmaq_f32(c.v[i], a.v[i], b.v[i]); });
  }
  static HOCKET_INLINE Floats fnma(const Floats& a, const Floats& b, const Floats& c) {
    return each([&](int i) { return vfmsq_f32(c.v[i], a.v[i], b.v[i]); });
  }
  static HOCKET_INLINE Floats zero_floats() {
    return each([](int) { return vdupq_n_f32(0); });
  }
  static HOCKET_INLINE Ints zero_ints() {
    Ints all;
    for (int i = 0; i < kVectors; ++i) all.v[i] = vdupq_n_s32(0);
    return all;
  }
  template <int kBytes>
  static HOCKET_INLINE void prefetch(const std::byte*) {}
};

// A vector is 4 rows of one column.
struct OneColumn {
  static HOCKET_INLINE void spread(float32x4_t rows, float32x4_t* to) { *to = rows; }
  static HOCKET_INLINE float32x4_t columns(const float* at) { return vdupq_n_f32(*at); }
  static HOCKET_INLINE int32x4_t columns(const int32_t* at) { return vdupq_n_s32(*at); }
};

// Dot products of signed bytes: 4 rows of 4 k by 4 k of a column an instruction. Weights of 8 bits are made signed,
// which takes their zero off.
template <int kGroups>
struct TileDot : TileNeon<kGroups, kGroups, OneColumn> {
  static constexpr int kTogether = 1;
  template <int kBits>
  static constexpr bool kUnsigned = kBits != 8;
  using typename TileNeon<kGroups, kGroups, OneColumn>::Floats;
  using typename TileNeon<kGroups, kGroups, OneColumn>::Ints;

  static HOCKET_INLINE void store(float* at, int64_t, const Floats& v) {
    for (int i = 0; i < kGroups; ++i) vst1q_f32(at + 4 * i, v.v[i]);
  }

  template <PackedFormat kFormat, int kFirst, int kEnd, int kColumns>
  static HOCKET_INLINE void multiply(const std::byte* values, const std::byte* x, Ints (&dots)[kColumns]) {
    unrolled<kFirst / 4, kEnd / 4>([&]<int kHalf>() __attribute__((always_inline)) {
      int8x16_t columns[kColumns];  // 4 steps
      for (int c = 0; c < kColumns; ++c)
        columns[c] = vreinterpretq_s8_u8(vld1q_u8(bytes_at(x + kBlock * c + 16 * kHalf)));
      unrolled<0, 4>([&]<int kStep>() __attribute__((always_inline)) {
        for (int i = 0; i < kGroups; ++i) {
          uint8x16_t w = step_of<kFormat, 4 * kHalf + kStep>(values + 16 * i);
          if constexpr (multiplied_bits(layout_of(kFormat)) == 8) w = veorq_u8(w, vdupq_n_u8(0x80));
          for (int c = 0; c < kColumns; ++c)
            dots[c].v[i] = vdotq_laneq_s32(dots[c].v[i], vreinterpretq_s8_u8(w), columns[c], kStep);
        }
      });
    });
  }
};

struct QuantiseNeon {
  static HOCKET_INLINE uint32_t largest(const float* x, int64_t n) {
    uint32x4_t most = vdupq_n_u32(0);
    for (int64_t k = 0; k < n; k += 4)
      most = vmaxq_u32(most, vandq_u32(vreinterpretq_u32_f32(vld1q_f32(x + k)), vdupq_n_u32(0x7FFFFFFF)));
    return vmaxvq_u32(most);
  }
  static HOCKET_INLINE void round(const float* x, float inverse, std::byte* bytes, int32_t (&sums)[2]) {
    for (int h = 0; h < 2; ++h) {
      int16x4_t q[4];
      int32x4_t sum = vdupq_n_s32(0);
      for (int i = 0; i < 4; ++i) {
        const float32x4_t scaled = vmulq_n_f32(vld1q_f32(x + 16 * h + 4 * i), inverse);
        const int32x4_t nearest =
            vbslq_s32(vcaleq_f32(scaled, vdupq_n_f32(127.5f)), vcvtnq_s32_f32(scaled), vdupq_n_s32(-127));
        sum = vaddq_s32(sum, nearest);
        q[i] = vmovn_s32(nearest);
      }
      sums[h] = vaddvq_s32(sum);
      const int8x16_t all = vcombine_s8(vmovn_s16(vcombine_s16(q[0], q[1])), vmovn_s16(vcombine_s16(q[2], q[3])));
      vst1q_s8(reinterpret_cast<int8_t*>(bytes + 16 * h), all);
    }
  }
};

// 16 floats in four registers.
struct VectorNeon {
  static constexpr bool kWide = false;
  float32x4_t v[4];

  template <typename F>
  static HOCKET_INLINE VectorNeon each(const F& f) {
    return {{f(0), f(1), f(2), f(3)}};
  }
  static HOCKET_INLINE VectorNeon load(const float* at) {
    return each([&](int i) { return vld1q_f32(at + 4 * i); });
  }
  static HOCKET_INLINE VectorNeon load_half(const uint16_t* at) {
    return each([&](int i) { return halves_of(at + 4 * i); });
  }
  static HOCKET_INLINE VectorNeon load_bf16(const uint16_t* at) {
    return each([&](int i) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(at + 4 * i), 16)); });
  }
  static HOCKET_INLINE void store(float* at, const VectorNeon& x) {
    for (int i = 0; i < 4; ++i) vst1q_f32(at + 4 * i, x.v[i]);
  }
  static HOCKET_INLINE VectorNeon splat(float x) {
    return each([&](int) { return vdupq_n_f32(x); });
  }
  static HOCKET_INLINE VectorNeon fma(const VectorNeon& x, const VectorNeon& y, const VectorNeon& z) {
    return each([&](int i) { return vfmaq_f32(z.v[i], x.v[i], y.v[i]); });
  }
  static HOCKET_INLINE VectorNeon add(const VectorNeon& x, const VectorNeon& y) {
    return each([&](int i) { return vaddq_f32(x.v[i], y.v[i]); });
  }
  static HOCKET_INLINE VectorNeon mul(const VectorNeon& x, const VectorNeon& y) {
    return each([&](int i) { return vmulq_f32(x.v[i], y.v[i]); });
  }
  // The second where one is a NaN.
  static HOCKET_INLINE VectorNeon max(const VectorNeon& x, const VectorNeon& y) {
    return each([&](int i) { return vbslq_f32(vcgtq_f32(x.v[i], y.v[i]), x.v[i], y.v[i]); });
  }
  static HOCKET_INLINE VectorNeon round(const VectorNeon& x) {
    return each([&](int i) { return vrndnq_f32(x.v[i]); });
  }
  static HOCKET_INLINE float most(const VectorNeon& x) {
    return vmaxnmvq_f32(vmaxnmq_f32(vmaxnmq_f32(x.v[0], x.v[1]), vmaxnmq_f32(x.v[2], x.v[3])));
  }
  static HOCKET_INLINE VectorNeon sums(const VectorNeon* x) {
    // Of fours `j` of x[first .. first + 3]: lane i is the sum in x[first + i].
    const auto fours = [&](int first, int j) {
      const float32x4_t p = x[first].v[j], q = x[first + 1].v[j], r = x[first + 2].v[j], s = x[first + 3].v[j];
      const float64x2_t pq = vreinterpretq_f64_f32(vaddq_f32(vzip1q_f32(p, q), vzip2q_f32(p, q)));
      const float64x2_t rs = vreinterpretq_f64_f32(vaddq_f32(vzip1q_f32(r, s), vzip2q_f32(r, s)));
      return vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(pq, rs)), vreinterpretq_f32_f64(vzip2q_f64(pq, rs)));
    };
    return each([&](int i) {
      return vaddq_f32(vaddq_f32(fours(4 * i, 0), fours(4 * i, 2)), vaddq_f32(fours(4 * i, 1), fours(4 * i, 3)));
    });
  }
  static HOCKET_INLINE VectorNeon zero_where_below(const VectorNeon& x, const VectorNeon& low, const VectorNeon& y) {
    return each([&](int i) {
      return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(y.v[i]), vcltq_f32(x.v[i], low.v[i])));
    });
  }
  static HOCKET_INLINE VectorNeon minus_infinity_where(const VectorNeon& mask, const VectorNeon& y) {
    const float32x4_t lowest = vdupq_n_f32(-__builtin_inff());
    return each([&](int i) { return vbslq_f32(vceqq_f32(mask.v[i], lowest), lowest, y.v[i]); });
  }
  static HOCKET_INLINE VectorNeon times_power_of_two(const VectorNeon& y, const VectorNeon& n) {
    return each([&](int i) {
      const int32x4_t exponent = vshlq_n_s32(vcvtnq_s32_f32(n.v[i]), 23);
      return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(y.v[i]), exponent));
    });
  }
};

}  // namespace
}  // namespace hocket
