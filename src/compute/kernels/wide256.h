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
      for (int i = 0; i < 4; ++i)
        q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + k + 8 * i), _mm256_set1_ps(inverse)));
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

template <typename Dot>
constexpr KernelTable make_table(const char* name) {
  return {name,
          quantise,
          {product<Dot, PackedFormat::kQ4_0>, product<Dot, PackedFormat::kQ4_1>, product<Dot, PackedFormat::kQ5_0>,
           product<Dot, PackedFormat::kQ5_1>, product<Dot, PackedFormat::kQ8_0>, product<Dot, PackedFormat::kQ4_K>,
           product<Dot, PackedFormat::kQ5_K>, product<Dot, PackedFormat::kQ6_K>}};
}

}  // namespace
}  // namespace hocket
