// compute/kernels/wide256.h: the kernels of x86 CPUs with vectors of 256 bits, for two files that differ in how bytes
// are multiplied, which is a type Dot:
//
//   kUnsigned<bits>   weights are multiplied as they are stored, so that their zero has to be taken off
//   pair<bits>(…)     adds two steps of 4 k to `dot`; `sum16` is its own between the pairs of a run
//
// A group is done in two halves of 8 rows and a panel in tiles of 4 columns, which is what 16 registers hold. All is of
// internal linkage, and no template of the standard library is instantiated: the including files are compiled for
// instructions that not every CPU has.
#pragma once

#include <immintrin.h>

#include "compute/kernels/attention_impl.h"
#include "compute/kernels/delta_impl.h"
#include "compute/kernels/float_impl.h"
#include "compute/kernels/tables.h"

namespace hocket {
namespace {

#define HOCKET_INLINE inline __attribute__((always_inline))

HOCKET_INLINE __m256i load(const std::byte* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

HOCKET_INLINE __m256i four(const std::byte* x) {
  return _mm256_set1_epi32(*reinterpret_cast<const int32_t*>(x));
}

HOCKET_INLINE __m256 halves(const std::byte* at) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}

HOCKET_INLINE __m256 unsigned_bytes(const std::byte* at) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))));
}

HOCKET_INLINE __m256 signed_bytes(const std::byte* at) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))));
}

// Steps 2v and 2v + 1 of a block for half a group; `values` already points at the half.
template <int kBits>
HOCKET_INLINE void unpack_pair(const std::byte* values, int v, __m256i& lo, __m256i& hi) {
  if constexpr (kBits == 8) {
    lo = load(values + 128 * v);
    hi = load(values + 128 * v + 64);
  } else {
    const __m256i low = _mm256_set1_epi8(0xF), both = load(values + 64 * v);
    lo = _mm256_and_si256(both, low);
    hi = _mm256_and_si256(_mm256_srli_epi16(both, 4), low);
    // Bits move within 16-bit lanes; what crosses a byte is masked away.
    if constexpr (kBits == 5) {
      const __m256i plane = load(values + 256), bit = _mm256_set1_epi8(0x10);
      const auto moved = [&](int s) {
        return s < 4 ? _mm256_slli_epi16(plane, 4 - s) : _mm256_srli_epi16(plane, s - 4);
      };
      lo = _mm256_or_si256(lo, _mm256_and_si256(moved(2 * v), bit));
      hi = _mm256_or_si256(hi, _mm256_and_si256(moved(2 * v + 1), bit));
    } else if constexpr (kBits == 6) {
      const __m256i plane = load(values + 256 + 64 * (v / 2)), bits = _mm256_set1_epi8(0x30);
      const __m256i a = v % 2 == 0 ? _mm256_slli_epi16(plane, 4) : plane;
      const __m256i b = v % 2 == 0 ? _mm256_slli_epi16(plane, 2) : _mm256_srli_epi16(plane, 2);
      lo = _mm256_or_si256(lo, _mm256_and_si256(a, bits));
      hi = _mm256_or_si256(hi, _mm256_and_si256(b, bits));
    }
  }
}

// dots[column] += pairs of steps [kFirst, kEnd) of a block.
template <typename Dot, int kBits, int kFirst, int kEnd, int kCols>
HOCKET_INLINE void multiply(const std::byte* values, const std::byte* x, __m256i (&dots)[kCols]) {
  __m256i sums16[kCols];
  for (auto& sum : sums16) sum = _mm256_setzero_si256();
  for (int v = kFirst; v < kEnd; ++v) {
    __m256i lo, hi;
    unpack_pair<kBits>(values, v, lo, hi);
    for (int c = 0; c < kCols; ++c)
      Dot::template pair<kBits>(lo, hi, x + kBlock * c + 8 * v, v - kFirst, dots[c], sums16[c]);
  }
}

// Half a group (`half` 0 or 1) and columns [column, column + kCols) of a panel.
template <typename Dot, PackedFormat kFormat, int kCols>
void tile(const std::byte* group, int half, int64_t n_in, const std::byte* panel, int width, int column, float* out,
          int64_t out_stride) {
  constexpr FormatLayout kLayout = layout_of(kFormat);
  constexpr ActivationForm kForm = form_of(kLayout);
  constexpr int kBits = kLayout.bits;
  constexpr int64_t kValueBytes = value_bytes(kBits);
  constexpr bool kZeros = kForm.sums == Sums::kZero && Dot::template kUnsigned<kBits>;
  const std::byte* values = group + 32 * half;
  const std::byte* record = group + group_value_bytes(kLayout, n_in);
  const std::byte* x = panel + kBlock * column;
  const float* x_scales = reinterpret_cast<const float*>(panel + panel_scales_at(n_in, width)) + column;
  const std::byte* x_sums = panel + panel_sums_at(kForm, n_in, width) + 4 * column;
  const auto sum_at = [&](int i) { return _mm256_set1_ps(reinterpret_cast<const float*>(x_sums)[i]); };
  const auto first = [&](int i) { return kZeros ? four(x_sums + 4 * i) : _mm256_setzero_si256(); };
  const int64_t n_blocks = n_in / kBlock;
  __m256 sums[kCols];
  for (auto& sum : sums) sum = _mm256_setzero_ps();

  if constexpr (kLayout.scales == Scales::kHalf || kLayout.scales == Scales::kHalfMinimum) {
    for (int64_t b = 0; b < n_blocks; ++b) {
      __m256i dots[kCols];
      for (int c = 0; c < kCols; ++c) dots[c] = first(c);
      multiply<Dot, kBits, 0, 4>(values, x, dots);
      const __m256 scale = halves(record + 16 * half);
      for (int c = 0; c < kCols; ++c) {
        const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(dots[c]), _mm256_set1_ps(x_scales[c]));
        sums[c] = _mm256_fmadd_ps(scaled, scale, sums[c]);
      }
      if constexpr (kLayout.scales == Scales::kHalfMinimum) {
        const __m256 minimum = halves(record + 32 + 16 * half);
        for (int c = 0; c < kCols; ++c) sums[c] = _mm256_fmadd_ps(minimum, sum_at(c), sums[c]);
      }
      values += kValueBytes;
      record += scales_bytes(kLayout.scales);
      x += kBlock * width;
      x_scales += width;
      x_sums += 4 * width;
    }
  } else {
    for (int64_t b = 0; b < n_blocks; b += 8) {
      const __m256 d = halves(record + 16 * half);
      __m256 parts[kCols];
      for (auto& part : parts) part = _mm256_setzero_ps();
      for (int j = 0; j < 8; ++j) {
        if constexpr (kLayout.scales == Scales::kSuperMinimum) {
          __m256i dots[kCols];
          for (int c = 0; c < kCols; ++c) dots[c] = first(c);
          multiply<Dot, kBits, 0, 4>(values, x, dots);
          const __m256 scale = _mm256_mul_ps(d, unsigned_bytes(record + 64 + 16 * j + 8 * half));
          for (int c = 0; c < kCols; ++c) parts[c] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[c]), scale, parts[c]);
          // Negating a factor is exact: this is the reference's fma of −(d_min · minimum).
          const __m256 minimum =
              _mm256_mul_ps(halves(record + 32 + 16 * half), unsigned_bytes(record + 192 + 16 * j + 8 * half));
          for (int c = 0; c < kCols; ++c) parts[c] = _mm256_fnmadd_ps(minimum, sum_at(c), parts[c]);
          x_sums += 4 * width;
        } else {
          for (int h = 0; h < 2; ++h) {
            __m256i dots[kCols];
            for (int c = 0; c < kCols; ++c) dots[c] = first(c);
            if (h == 0)
              multiply<Dot, kBits, 0, 2>(values, x, dots);
            else
              multiply<Dot, kBits, 2, 4>(values, x, dots);
            const __m256 scale = _mm256_mul_ps(d, signed_bytes(record + 32 + 16 * (2 * j + h) + 8 * half));
            for (int c = 0; c < kCols; ++c) parts[c] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[c]), scale, parts[c]);
            x_sums += 4 * width;
          }
        }
        values += kValueBytes;
        x += kBlock * width;
      }
      for (int c = 0; c < kCols; ++c) sums[c] = _mm256_fmadd_ps(parts[c], _mm256_set1_ps(x_scales[c]), sums[c]);
      record += scales_bytes(kLayout.scales);
      x_scales += width;
    }
  }
  for (int c = 0; c < kCols; ++c) _mm256_storeu_ps(out + (column + c) * out_stride + 8 * half, sums[c]);
}

template <typename Dot, PackedFormat kFormat>
void product(const std::byte* group, int64_t n_in, const std::byte* panel, int width, float* out, int64_t out_stride) {
  for (int column = 0; column < width;) {
    const int left = width - column, n = left >= 4 ? 4 : left;
    for (int half = 0; half < 2; ++half) {
      if (n == 4) tile<Dot, kFormat, 4>(group, half, n_in, panel, width, column, out, out_stride);
      if (n == 3) tile<Dot, kFormat, 3>(group, half, n_in, panel, width, column, out, out_stride);
      if (n == 2) tile<Dot, kFormat, 2>(group, half, n_in, panel, width, column, out, out_stride);
      if (n == 1) tile<Dot, kFormat, 1>(group, half, n_in, panel, width, column, out, out_stride);
    }
    column += n;
  }
}

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

void quantise(const float* x, int64_t first, int64_t end, const ActivationForm& form, int64_t n_in, std::byte* panel,
              int width, int column) {
  if (form.scale_block == 1) return place_floats(x, first, end, panel, width, column);
  auto* scales = reinterpret_cast<float*>(panel + panel_scales_at(n_in, width));
  std::byte* sums = panel + panel_sums_at(form, n_in, width);
  const __m256i positive = _mm256_set1_epi32(0x7FFFFFFF);
  for (int64_t k0 = first; k0 < end; k0 += form.scale_block) {
    __m256i most = _mm256_setzero_si256();  // as bits, so that a NaN is the largest of all
    for (int64_t k = k0; k < k0 + form.scale_block; k += 8)
      most = _mm256_max_epu32(most, _mm256_and_si256(load(reinterpret_cast<const std::byte*>(x + k)), positive));
    const uint32_t bits = largest_lane(most);
    float amax;
    __builtin_memcpy(&amax, &bits, sizeof amax);
    const bool nothing = amax < kSmallestActivation;
    const float scale = nothing ? 0.0f : amax / 127.0f, inverse = nothing ? 0.0f : 127.0f / amax;
    scales[k0 / form.scale_block * width + column] = scale;
    for (int64_t k = k0; k < k0 + form.scale_block; k += kBlock) {
      __m256i q[4];
      // What is not finite becomes the lowest number; its scale is not finite, either.
      for (int i = 0; i < 4; ++i)
        q[i] =
            _mm256_max_epi32(_mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + k + 8 * i), _mm256_set1_ps(inverse))),
                             _mm256_set1_epi32(-127));
      const int32_t low = add_lanes(_mm256_add_epi32(q[0], q[1])), high = add_lanes(_mm256_add_epi32(q[2], q[3]));
      // Packing works within halves of a vector: the last step puts the groups of 4 in order.
      const __m256i bytes = _mm256_permutevar8x32_epi32(
          _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3])),
          _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(panel + (k / kBlock * width + column) * kBlock), bytes);
      if (form.sum_block == 16) {
        reinterpret_cast<int32_t*>(sums)[k / 16 * width + column] = -form.zero * low;
        reinterpret_cast<int32_t*>(sums)[(k / 16 + 1) * width + column] = -form.zero * high;
      } else if (form.sums != Sums::kZero) {
        const auto sum = static_cast<float>(low + high);
        reinterpret_cast<float*>(sums)[k / kBlock * width + column] = form.sums == Sums::kScaled ? scale * sum : sum;
      } else {
        reinterpret_cast<int32_t*>(sums)[k / kBlock * width + column] = -form.zero * (low + high);
      }
    }
  }
}

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
constexpr KernelTable make_table(const char* name) {
  return {name,
          quantise,
          {product<Dot, PackedFormat::kQ4_0>, product<Dot, PackedFormat::kQ4_1>, product<Dot, PackedFormat::kQ5_0>,
           product<Dot, PackedFormat::kQ5_1>, product<Dot, PackedFormat::kQ8_0>, product<Dot, PackedFormat::kQ4_K>,
           product<Dot, PackedFormat::kQ5_K>, product<Dot, PackedFormat::kQ6_K>,
           float_product<Vector256, PackedFormat::kF32>, float_product<Vector256, PackedFormat::kF16>,
           float_product<Vector256, PackedFormat::kBF16>},
          attention<Vector256>,
          delta<Vector256>};
}

}  // namespace
}  // namespace hocket
