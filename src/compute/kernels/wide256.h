// compute/kernels/wide256.h: the kernels of x86 CPUs with vectors of 256 bits, for two files that differ in how bytes
// are multiplied, which is a type Dot:
//
//   kUnsigned<bits>   weights are multiplied as they are stored, so that their zero has to be taken off
//   pair<bits>(…)     adds two steps of 4 k, pair `at` of `n`, to `dot`; `sum16` is its own between the pairs
//
// A group is done in two halves of 8 rows and a panel in tiles of 4 columns, which is what 16 registers hold. All is of
// internal linkage, and no template of the standard library is instantiated: the including files are compiled for
// instructions that not every CPU has.
#pragma once

#include <immintrin.h>

#include "compute/kernels/product_impl.h"
#include "compute/kernels/quantise_impl.h"
#include "compute/kernels/table_impl.h"

namespace hocket {
namespace {

HOCKET_INLINE __m256i load(const std::byte* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

HOCKET_INLINE __m256i four(const std::byte* x) {
  return _mm256_set1_epi32(*reinterpret_cast<const int32_t*>(x));
}

HOCKET_INLINE __m256 halves(const std::byte* at) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}

HOCKET_INLINE __m128i eight_bytes(const std::byte* at) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
}

template <int kBy>  // to the left, within 16-bit lanes: what crosses a byte has to be masked away
HOCKET_INLINE __m256i moved(__m256i v) {
  if constexpr (kBy > 0) return _mm256_slli_epi16(v, kBy);
  if constexpr (kBy < 0) return _mm256_srli_epi16(v, -kBy);
  return v;
}

HOCKET_INLINE __m256i code_table(const uint8_t (&codes)[16]) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
}

// The numbers of step kStep of a block for half a group; `values` already points at the half.
template <PackedFormat kFormat, int kStep>
HOCKET_INLINE __m256i step_of(const std::byte* values) {
  constexpr FormatLayout kLayout = layout_of(kFormat);
  constexpr Field kLow = low_field(kLayout.bits, kStep), kHigh = high_field(kLayout.bits, kStep);
  __m256i w = load(values + kLow.at);
  if constexpr (kLow.bits < 8)
    w = _mm256_and_si256(moved<-kLow.shift>(w), _mm256_set1_epi8(static_cast<char>((1 << kLow.bits) - 1)));
  if constexpr (kHigh.bits > 0) {
    const __m256i mask = _mm256_set1_epi8(static_cast<char>(((1 << kHigh.bits) - 1) << kLow.bits));
    w = _mm256_or_si256(w, _mm256_and_si256(moved<kLow.bits - kHigh.shift>(load(values + kHigh.at)), mask));
  }
  if constexpr (kLayout.codes == Codes::kUneven) w = _mm256_shuffle_epi8(code_table(kUnevenCodes), w);
  if constexpr (kLayout.codes == Codes::kFloat4) w = _mm256_shuffle_epi8(code_table(kFloat4Codes), w);
  return w;
}

template <typename Dot>
struct Tile256 {
  static constexpr int kRows = 8, kTogether = 1;
  template <int kBits>
  static constexpr bool kUnsigned = Dot::template kUnsigned<kBits>;
  using Floats = __m256;
  using Ints = __m256i;

  static HOCKET_INLINE Floats halves(const std::byte* at) { return hocket::halves(at); }
  static HOCKET_INLINE Floats unsigned_bytes(const std::byte* at) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(eight_bytes(at)));
  }
  static HOCKET_INLINE Floats signed_bytes(const std::byte* at) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight_bytes(at)));
  }
  static HOCKET_INLINE Floats low_nibbles(const std::byte* at) {
    return _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_cvtepu8_epi32(eight_bytes(at)), _mm256_set1_epi32(0xF)));
  }
  static HOCKET_INLINE Floats high_nibbles(const std::byte* at) {
    return _mm256_cvtepi32_ps(_mm256_srli_epi32(_mm256_cvtepu8_epi32(eight_bytes(at)), 4));
  }
  static HOCKET_INLINE Floats powers(const std::byte* at) {
    const __m256i e = _mm256_cvtepu8_epi32(eight_bytes(at)), one = _mm256_set1_epi32(1);
    // Exponents 0 and 1 are subnormal numbers: one bit, which the other side is below.
    const __m256i least = _mm256_slli_epi32(_mm256_add_epi32(_mm256_min_epi32(e, one), one), 21);
    return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_slli_epi32(_mm256_sub_epi32(e, one), 23), least));
  }
  static HOCKET_INLINE Floats columns(const float* at) { return _mm256_set1_ps(*at); }
  static HOCKET_INLINE Ints column_ints(const std::byte* at) { return four(at); }
  static HOCKET_INLINE Floats to_floats(Ints v) { return _mm256_cvtepi32_ps(v); }
  static HOCKET_INLINE Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static HOCKET_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  static HOCKET_INLINE Floats fnma(Floats a, Floats b, Floats c) { return _mm256_fnmadd_ps(a, b, c); }
  static HOCKET_INLINE Floats zero_floats() { return _mm256_setzero_ps(); }
  static HOCKET_INLINE Ints zero_ints() { return _mm256_setzero_si256(); }
  static HOCKET_INLINE void store(float* at, int64_t, Floats v) { _mm256_storeu_ps(at, v); }
  template <int kBytes>
  static HOCKET_INLINE void prefetch(const std::byte*) {}

  template <PackedFormat kFormat, int kFirst, int kEnd, int kColumns>
  static HOCKET_INLINE void multiply(const std::byte* values, const std::byte* x, Ints (&dots)[kColumns]) {
    __m256i sums16[kColumns];
    for (auto& sum : sums16) sum = _mm256_setzero_si256();
    unrolled<kFirst / 2, kEnd / 2>([&]<int kPair>() __attribute__((always_inline)) {
      const __m256i lo = step_of<kFormat, 2 * kPair>(values), hi = step_of<kFormat, 2 * kPair + 1>(values);
      for (int c = 0; c < kColumns; ++c)
        Dot::template pair<multiplied_bits(layout_of(kFormat))>(lo, hi, x + kBlock * c + 8 * kPair, kPair - kFirst / 2,
                                                                (kEnd - kFirst) / 2, dots[c], sums16[c]);
    });
  }
};

HOCKET_INLINE int32_t add_lanes(__m256i v) {
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1));
  return _mm_cvtsi128_si32(sum);
}

HOCKET_INLINE uint32_t largest_lane(__m256i v) {
  __m128i most = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  most = _mm_max_epu32(most, _mm_shuffle_epi32(most, 0x4E));
  most = _mm_max_epu32(most, _mm_shuffle_epi32(most, 0xB1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(most));
}

struct Quantise256 {
  static HOCKET_INLINE uint32_t largest(const float* x, int64_t n) {
    const __m256i positive = _mm256_set1_epi32(0x7FFFFFFF);
    __m256i most = _mm256_setzero_si256();
    for (int64_t k = 0; k < n; k += 8)
      most = _mm256_max_epu32(most, _mm256_and_si256(load(reinterpret_cast<const std::byte*>(x + k)), positive));
    return largest_lane(most);
  }
  static HOCKET_INLINE void round(const float* x, float inverse, std::byte* bytes, int32_t (&sums)[2]) {
    __m256i q[4];
    for (int i = 0; i < 4; ++i)
      q[i] = _mm256_max_epi32(_mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), _mm256_set1_ps(inverse))),
                              _mm256_set1_epi32(-127));
    sums[0] = add_lanes(_mm256_add_epi32(q[0], q[1]));
    sums[1] = add_lanes(_mm256_add_epi32(q[2], q[3]));
    // Packing works within halves of a vector: the last step puts the groups of 4 in order.
    const __m256i in_order =
        _mm256_permutevar8x32_epi32(_mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3])),
                                    _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(bytes), in_order);
  }
};

// 16 floats in two registers.
struct Vector256 {
  static constexpr bool kWide = false;
  __m256 a, b;

  static HOCKET_INLINE Vector256 load(const float* at) { return {_mm256_loadu_ps(at), _mm256_loadu_ps(at + 8)}; }
  static HOCKET_INLINE Vector256 load_half(const uint16_t* at) {
    return {halves(reinterpret_cast<const std::byte*>(at)), halves(reinterpret_cast<const std::byte*>(at + 8))};
  }
  static HOCKET_INLINE Vector256 load_bf16(const uint16_t* at) {
    const auto wide = [](const uint16_t* from) {
      const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
      return _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
    };
    return {wide(at), wide(at + 8)};
  }
  static HOCKET_INLINE void store(float* at, Vector256 x) {
    _mm256_storeu_ps(at, x.a);
    _mm256_storeu_ps(at + 8, x.b);
  }
  static HOCKET_INLINE Vector256 splat(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static HOCKET_INLINE Vector256 fma(Vector256 x, Vector256 y, Vector256 z) {
    return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
  }
  static HOCKET_INLINE Vector256 add(Vector256 x, Vector256 y) {
    return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
  }
  static HOCKET_INLINE Vector256 mul(Vector256 x, Vector256 y) {
    return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
  }
  static HOCKET_INLINE Vector256 max(Vector256 x, Vector256 y) {
    return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
  }
  static HOCKET_INLINE Vector256 round(Vector256 x) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(x.a, kNearest), _mm256_round_ps(x.b, kNearest)};
  }
  static HOCKET_INLINE float most(Vector256 x) {
    const __m256 both = _mm256_max_ps(x.a, x.b);
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(both), _mm256_extractf128_ps(both, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
  }
  static HOCKET_INLINE Vector256 sums(const Vector256* v) {
    // Four vectors: lane i is the sum of v[i].
    const auto four_of = [](const Vector256* w) {
      const auto within = [](__m256 p, __m256 q, __m256 r, __m256 s) {
        const __m256d x = _mm256_castps_pd(_mm256_add_ps(_mm256_unpacklo_ps(p, q), _mm256_unpackhi_ps(p, q)));
        const __m256d y = _mm256_castps_pd(_mm256_add_ps(_mm256_unpacklo_ps(r, s), _mm256_unpackhi_ps(r, s)));
        return _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(x, y)), _mm256_castpd_ps(_mm256_unpackhi_pd(x, y)));
      };
      const __m256 across =
          _mm256_add_ps(within(w[0].a, w[1].a, w[2].a, w[3].a), within(w[0].b, w[1].b, w[2].b, w[3].b));
      return _mm_add_ps(_mm256_castps256_ps128(across), _mm256_extractf128_ps(across, 1));
    };
    return {_mm256_set_m128(four_of(v + 4), four_of(v)), _mm256_set_m128(four_of(v + 12), four_of(v + 8))};
  }
  static HOCKET_INLINE Vector256 zero_where_below(Vector256 x, Vector256 low, Vector256 y) {
    return {_mm256_and_ps(_mm256_cmp_ps(x.a, low.a, _CMP_NLT_UQ), y.a),
            _mm256_and_ps(_mm256_cmp_ps(x.b, low.b, _CMP_NLT_UQ), y.b)};
  }
  static HOCKET_INLINE Vector256 minus_infinity_where(Vector256 mask, Vector256 y) {
    const __m256 lowest = _mm256_set1_ps(-__builtin_inff());
    return {_mm256_blendv_ps(y.a, lowest, _mm256_cmp_ps(mask.a, lowest, _CMP_EQ_OQ)),
            _mm256_blendv_ps(y.b, lowest, _mm256_cmp_ps(mask.b, lowest, _CMP_EQ_OQ))};
  }
  static HOCKET_INLINE Vector256 times_power_of_two(Vector256 y, Vector256 n) {
    const auto scaled = [](__m256 value, __m256 power) {
      const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(power), 23);
      return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(value), exponent));
    };
    return {scaled(y.a, n.a), scaled(y.b, n.b)};
  }
};

template <typename Dot>
struct Isa256 {
  using Vector = Vector256;
  static constexpr QuantiseColumn quantise = hocket::quantise<Quantise256>;
  static constexpr int kMostColumns = 4;
  static constexpr bool kWholePanels = false;
  static constexpr bool has_tile(int) { return true; }
  template <int kColumns>
  using Tile = Tile256<Dot>;
  template <PackedFormat kFormat>
  static void product(const std::byte* group, int64_t n_in, const std::byte* panel, int width, float* out,
                      int64_t out_stride) {
    tiled_product<Isa256, kFormat>(group, n_in, panel, width, out, out_stride);
  }
};

}  // namespace
}  // namespace hocket
