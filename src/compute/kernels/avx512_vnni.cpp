// AVX-512 with VNNI: 16 rows of 4 k a vector, 4 · 16 multiply-adds an instruction.
//
// A panel's columns are multiplied by weights that were unpacked once into 8 registers. Bytes of x reach an instruction
// as broadcasts from memory, which cost no arithmetic unit. No template of the standard library may be instantiated
// here: the linker could take its AVX-512 code for the whole program.
#if defined(__x86_64__)

#include <immintrin.h>

#include "compute/kernels/attention_impl.h"
#include "compute/kernels/delta_impl.h"
#include "compute/kernels/float_impl.h"
#include "compute/kernels/tables.h"

#define HOCKET_INLINE inline __attribute__((always_inline))

namespace hocket {
namespace {

template <int kBits>
HOCKET_INLINE void unpack(const std::byte* values, __m512i (&w)[8]) {
  if constexpr (kBits == 8) {
    for (int s = 0; s < 8; ++s) w[s] = _mm512_load_si512(values + 64 * s);
  } else {
    const __m512i low = _mm512_set1_epi8(0xF);
    for (int v = 0; v < 4; ++v) {
      const __m512i both = _mm512_load_si512(values + 64 * v);
      w[2 * v] = _mm512_and_si512(both, low);
      w[2 * v + 1] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
    }
    constexpr int kOr = 0xEA;  // a | (b & c) in _mm512_ternarylogic_epi64(b, c, a)
    if constexpr (kBits == 5) {
      const __m512i plane = _mm512_load_si512(values + 256), bit = _mm512_set1_epi8(0x10);
      for (int s = 0; s < 8; ++s) {
        const __m512i moved = s < 4 ? _mm512_slli_epi16(plane, 4 - s) : _mm512_srli_epi16(plane, s - 4);
        w[s] = _mm512_ternarylogic_epi64(moved, bit, w[s], kOr);
      }
    } else if constexpr (kBits == 6) {
      const __m512i bits = _mm512_set1_epi8(0x30);
      for (int s = 0; s < 8; ++s) {
        const __m512i plane = _mm512_load_si512(values + 256 + 64 * (s / 4));
        const int shift = 4 - s % 4 * 2;
        const __m512i moved = shift >= 0 ? _mm512_slli_epi16(plane, shift) : _mm512_srli_epi16(plane, -shift);
        w[s] = _mm512_ternarylogic_epi64(moved, bits, w[s], kOr);
      }
    }
  }
}

HOCKET_INLINE __m512i four(const std::byte* x) {
  return _mm512_set1_epi32(*reinterpret_cast<const int32_t*>(x));
}

HOCKET_INLINE __m512 halves(const std::byte* at) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
}

HOCKET_INLINE __m512 unsigned_bytes(const std::byte* at) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))));
}

HOCKET_INLINE __m512 signed_bytes(const std::byte* at) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))));
}

// dots[column] += steps [kFirst, kEnd) of a block. Column after column within a step: each instruction waits for the
// one before in its own column only.
template <int kFirst, int kEnd, int kWidth>
HOCKET_INLINE void multiply(const __m512i (&w)[8], const std::byte* x, __m512i (&dots)[kWidth]) {
  for (int s = kFirst; s < kEnd; ++s)
    for (int c = 0; c < kWidth; ++c) dots[c] = _mm512_dpbusd_epi32(dots[c], w[s], four(x + kBlock * c + 4 * s));
}

// Bytes that a product will read this much later; the caches' own prefetchers stop at the end of a page.
constexpr int64_t kAhead = 4096;

template <int kBytes>
HOCKET_INLINE void prefetch(const std::byte* at) {
  for (int i = 0; i < kBytes; i += 64) _mm_prefetch(reinterpret_cast<const char*>(at) + kAhead + i, _MM_HINT_T0);
}

template <PackedFormat kFormat, int kWidth>
void product(const std::byte* group, int64_t n_in, const std::byte* panel, float* out, int64_t out_stride) {
  constexpr FormatLayout kLayout = layout_of(kFormat);
  constexpr ActivationForm kForm = form_of(kLayout);
  constexpr int kValueBytes = static_cast<int>(value_bytes(kLayout.bits));
  const std::byte* values = group;
  const std::byte* record = group + group_value_bytes(kLayout, n_in);
  const auto* x_scales = reinterpret_cast<const float*>(panel + panel_scales_at(n_in, kWidth));
  const std::byte* x_sums = panel + panel_sums_at(kForm, n_in, kWidth);
  const auto sum_at = [&](int i) { return _mm512_set1_ps(reinterpret_cast<const float*>(x_sums)[i]); };
  const int64_t n_blocks = n_in / kBlock;
  __m512 sums[kWidth];
  for (int c = 0; c < kWidth; ++c) sums[c] = _mm512_setzero_ps();

  if constexpr (kLayout.scales == Scales::kHalf || kLayout.scales == Scales::kHalfMinimum) {
    for (int64_t b = 0; b < n_blocks; ++b) {
      if constexpr (kWidth <= 2) prefetch<kValueBytes>(values);
      __m512i w[8];
      unpack<kLayout.bits>(values, w);
      const __m512 scale = halves(record);
      __m512i dots[kWidth];
      for (int c = 0; c < kWidth; ++c)
        dots[c] = kForm.sums == Sums::kZero ? four(x_sums + 4 * c) : _mm512_setzero_si512();
      multiply<0, 8>(w, panel, dots);
      for (int c = 0; c < kWidth; ++c) {
        const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(dots[c]), _mm512_set1_ps(x_scales[c]));
        sums[c] = _mm512_fmadd_ps(scaled, scale, sums[c]);
      }
      if constexpr (kLayout.scales == Scales::kHalfMinimum) {
        const __m512 minimum = halves(record + 32);
        for (int c = 0; c < kWidth; ++c) sums[c] = _mm512_fmadd_ps(minimum, sum_at(c), sums[c]);
      }
      values += kValueBytes;
      record += scales_bytes(kLayout.scales);
      panel += kBlock * kWidth;
      x_scales += kWidth;
      x_sums += 4 * kWidth;
    }
  } else {
    for (int64_t b = 0; b < n_blocks; b += 8) {
      const __m512 d = halves(record);
      __m512 parts[kWidth];
      for (int c = 0; c < kWidth; ++c) parts[c] = _mm512_setzero_ps();
      for (int j = 0; j < 8; ++j) {
        if constexpr (kWidth <= 2) prefetch<kValueBytes>(values);
        __m512i w[8];
        unpack<kLayout.bits>(values, w);
        if constexpr (kLayout.scales == Scales::kSuperMinimum) {
          const __m512 scale = _mm512_mul_ps(d, unsigned_bytes(record + 64 + 16 * j));
          __m512i dots[kWidth];
          for (int c = 0; c < kWidth; ++c) dots[c] = _mm512_setzero_si512();
          multiply<0, 8>(w, panel, dots);
          for (int c = 0; c < kWidth; ++c) parts[c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[c]), scale, parts[c]);
          // Negating a factor is exact, so that this is the reference's fma of −(d_min · minimum).
          const __m512 minimum = _mm512_mul_ps(halves(record + 32), unsigned_bytes(record + 192 + 16 * j));
          for (int c = 0; c < kWidth; ++c) parts[c] = _mm512_fnmadd_ps(minimum, sum_at(c), parts[c]);
          x_sums += 4 * kWidth;
        } else {
          for (int h = 0; h < 2; ++h) {
            const __m512 scale = _mm512_mul_ps(d, signed_bytes(record + 32 + 16 * (2 * j + h)));
            __m512i dots[kWidth];
            for (int c = 0; c < kWidth; ++c) dots[c] = four(x_sums + 4 * c);
            if (h == 0)
              multiply<0, 4>(w, panel, dots);
            else
              multiply<4, 8>(w, panel, dots);
            for (int c = 0; c < kWidth; ++c) parts[c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[c]), scale, parts[c]);
            x_sums += 4 * kWidth;
          }
        }
        values += kValueBytes;
        panel += kBlock * kWidth;
      }
      for (int c = 0; c < kWidth; ++c) sums[c] = _mm512_fmadd_ps(parts[c], _mm512_set1_ps(x_scales[c]), sums[c]);
      record += scales_bytes(kLayout.scales);
      x_scales += kWidth;
    }
  }
  for (int c = 0; c < kWidth; ++c) _mm512_storeu_ps(out + c * out_stride, sums[c]);
}

template <PackedFormat kFormat>
void product_of(const std::byte* group, int64_t n_in, const std::byte* panel, int width, float* out,
                int64_t out_stride) {
  switch (width) {
    case 1:
      return product<kFormat, 1>(group, n_in, panel, out, out_stride);
    case 2:
      return product<kFormat, 2>(group, n_in, panel, out, out_stride);
    case 3:
      return product<kFormat, 3>(group, n_in, panel, out, out_stride);
    case 4:
      return product<kFormat, 4>(group, n_in, panel, out, out_stride);
    case 5:
      return product<kFormat, 5>(group, n_in, panel, out, out_stride);
    case 6:
      return product<kFormat, 6>(group, n_in, panel, out, out_stride);
    case 7:
      return product<kFormat, 7>(group, n_in, panel, out, out_stride);
    case 8:
      return product<kFormat, 8>(group, n_in, panel, out, out_stride);
    case 9:
      return product<kFormat, 9>(group, n_in, panel, out, out_stride);
    case 10:
      return product<kFormat, 10>(group, n_in, panel, out, out_stride);
    case 11:
      return product<kFormat, 11>(group, n_in, panel, out, out_stride);
    default:
      return product<kFormat, 12>(group, n_in, panel, out, out_stride);
  }
}

void quantise(const float* x, int64_t first, int64_t end, const ActivationForm& form, int64_t n_in, std::byte* panel,
              int width, int column) {
  if (form.scale_block == 1) return place_floats(x, first, end, panel, width, column);
  auto* scales = reinterpret_cast<float*>(panel + panel_scales_at(n_in, width));
  std::byte* sums = panel + panel_sums_at(form, n_in, width);
  const __m512i positive = _mm512_set1_epi32(0x7FFFFFFF);
  for (int64_t k0 = first; k0 < end; k0 += form.scale_block) {
    __m512i largest = _mm512_setzero_si512();  // as bits, so that a NaN is the largest of all
    for (int64_t k = k0; k < k0 + form.scale_block; k += 16)
      largest = _mm512_max_epu32(largest, _mm512_and_si512(_mm512_loadu_si512(x + k), positive));
    const uint32_t bits = _mm512_reduce_max_epu32(largest);
    float amax;
    __builtin_memcpy(&amax, &bits, sizeof amax);
    const bool nothing = amax < kSmallestActivation;
    const float scale = nothing ? 0.0f : amax / 127.0f, inverse = nothing ? 0.0f : 127.0f / amax;
    scales[k0 / form.scale_block * width + column] = scale;
    for (int64_t k = k0; k < k0 + form.scale_block; k += kBlock) {
      int32_t part[2];
      for (int h = 0; h < 2; ++h) {
        // What is not finite becomes the lowest number; its scale is not finite, either.
        const __m512i q = _mm512_max_epi32(
            _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + k + 16 * h), _mm512_set1_ps(inverse))),
            _mm512_set1_epi32(-127));
        part[h] = _mm512_reduce_add_epi32(q);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(panel + (k / kBlock * width + column) * kBlock + 16 * h),
                         _mm512_cvtsepi32_epi8(q));
      }
      if (form.sum_block == 16) {
        for (int h = 0; h < 2; ++h)
          reinterpret_cast<int32_t*>(sums)[(k / 16 + h) * width + column] = -form.zero * part[h];
      } else if (form.sums != Sums::kZero) {
        const auto sum = static_cast<float>(part[0] + part[1]);
        reinterpret_cast<float*>(sums)[k / kBlock * width + column] = form.sums == Sums::kScaled ? scale * sum : sum;
      } else {
        reinterpret_cast<int32_t*>(sums)[k / kBlock * width + column] = -form.zero * (part[0] + part[1]);
      }
    }
  }
}

struct Vector512 {
  static constexpr bool kWide = true;
  __m512 v;

  static HOCKET_INLINE Vector512 load(const float* at) { return {_mm512_loadu_ps(at)}; }
  static HOCKET_INLINE Vector512 load_half(const uint16_t* at) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)))};
  }
  static HOCKET_INLINE Vector512 load_bf16(const uint16_t* at) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
  }
  static HOCKET_INLINE void store(float* at, Vector512 a) { _mm512_storeu_ps(at, a.v); }
  static HOCKET_INLINE Vector512 splat(float x) { return {_mm512_set1_ps(x)}; }
  static HOCKET_INLINE Vector512 fma(Vector512 a, Vector512 b, Vector512 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  static HOCKET_INLINE Vector512 add(Vector512 a, Vector512 b) { return {_mm512_add_ps(a.v, b.v)}; }
  static HOCKET_INLINE Vector512 mul(Vector512 a, Vector512 b) { return {_mm512_mul_ps(a.v, b.v)}; }
  static HOCKET_INLINE Vector512 max(Vector512 a, Vector512 b) { return {_mm512_max_ps(a.v, b.v)}; }
  static HOCKET_INLINE Vector512 round(Vector512 a) {
    return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  static HOCKET_INLINE float most(Vector512 a) { return _mm512_reduce_max_ps(a.v); }
  static HOCKET_INLINE Vector512 sums(const Vector512* a) {
    __m512 pairs[8], fours[4];
    for (int i = 0; i < 8; ++i)
      pairs[i] =
          _mm512_add_ps(_mm512_unpacklo_ps(a[2 * i].v, a[2 * i + 1].v), _mm512_unpackhi_ps(a[2 * i].v, a[2 * i + 1].v));
    for (int i = 0; i < 4; ++i) {
      const __m512d x = _mm512_castps_pd(pairs[2 * i]), y = _mm512_castps_pd(pairs[2 * i + 1]);
      fours[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)), _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
    }
    const auto halves_of = [](__m512 x, __m512 y) {
      return _mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x44), _mm512_shuffle_f32x4(x, y, 0xEE));
    };
    const __m512 low = halves_of(fours[0], fours[1]), high = halves_of(fours[2], fours[3]);
    return {_mm512_add_ps(_mm512_shuffle_f32x4(low, high, 0x88), _mm512_shuffle_f32x4(low, high, 0xDD))};
  }
  static HOCKET_INLINE Vector512 zero_where_below(Vector512 x, Vector512 low, Vector512 y) {
    return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x.v, low.v, _CMP_NLT_UQ), y.v)};
  }
  static HOCKET_INLINE Vector512 minus_infinity_where(Vector512 mask, Vector512 y) {
    const __m512 lowest = _mm512_set1_ps(-__builtin_inff());
    return {_mm512_mask_mov_ps(y.v, _mm512_cmp_ps_mask(mask.v, lowest, _CMP_EQ_OQ), lowest)};
  }
  static HOCKET_INLINE Vector512 times_power_of_two(Vector512 y, Vector512 n) {
    const __m512i exponent = _mm512_slli_epi32(_mm512_cvtps_epi32(n.v), 23);
    return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(y.v), exponent))};
  }
};

}  // namespace

const KernelTable kAvx512VnniKernels{
    "avx512-vnni",
    quantise,
    {product_of<PackedFormat::kQ4_0>, product_of<PackedFormat::kQ4_1>, product_of<PackedFormat::kQ5_0>,
     product_of<PackedFormat::kQ5_1>, product_of<PackedFormat::kQ8_0>, product_of<PackedFormat::kQ4_K>,
     product_of<PackedFormat::kQ5_K>, product_of<PackedFormat::kQ6_K>, float_product<Vector512, PackedFormat::kF32>,
     float_product<Vector512, PackedFormat::kF16>, float_product<Vector512, PackedFormat::kBF16>},
    attention<Vector512>,
    delta<Vector512>};

}  // namespace hocket

#endif
