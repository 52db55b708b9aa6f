// AVX-512 with VNNI: 16 rows of 4 k a vector, 4 · 16 multiply-adds an instruction.
//
// A panel's columns are multiplied by weights that were unpacked once into 8 registers. Bytes of x reach an instruction
// as broadcasts from memory, which cost no arithmetic unit. No template of the standard library may be instantiated
// here: the linker could take its AVX-512 code for the whole program.
#if defined(__x86_64__)

#include <immintrin.h>

#include "compute/kernels/product_impl.h"
#include "compute/kernels/quantise_impl.h"
#include "compute/kernels/table_impl.h"

namespace hocket {
namespace {

HOCKET_INLINE __m512i four(const std::byte* x) {
  return _mm512_set1_epi32(*reinterpret_cast<const int32_t*>(x));
}

template <int kBy>  // to the left, within 16-bit lanes: what crosses a byte has to be masked away
HOCKET_INLINE __m512i moved(__m512i v) {
  if constexpr (kBy > 0) return _mm512_slli_epi16(v, kBy);
  if constexpr (kBy < 0) return _mm512_srli_epi16(v, -kBy);
  return v;
}

HOCKET_INLINE __m512i code_table(const uint8_t (&codes)[16]) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
}

// The numbers of step kStep of a block.
template <PackedFormat kFormat, int kStep>
HOCKET_INLINE __m512i step_of(const std::byte* values) {
  constexpr FormatLayout kLayout = layout_of(kFormat);
  constexpr Field kLow = low_field(kLayout.bits, kStep), kHigh = high_field(kLayout.bits, kStep);
  __m512i w = _mm512_load_si512(values + kLow.at);
  if constexpr (kLow.bits < 8)
    w = _mm512_and_si512(moved<-kLow.shift>(w), _mm512_set1_epi8(static_cast<char>((1 << kLow.bits) - 1)));
  if constexpr (kHigh.bits > 0) {
    constexpr int kOr = 0xEA;  // a | (b & c) in _mm512_ternarylogic_epi64(b, c, a)
    const __m512i mask = _mm512_set1_epi8(static_cast<char>(((1 << kHigh.bits) - 1) << kLow.bits));
    const __m512i high = moved<kLow.bits - kHigh.shift>(_mm512_load_si512(values + kHigh.at));
    w = _mm512_ternarylogic_epi64(high, mask, w, kOr);
  }
  if constexpr (kLayout.codes == Codes::kUneven) w = _mm512_shuffle_epi8(code_table(kUnevenCodes), w);
  if constexpr (kLayout.codes == Codes::kFloat4) w = _mm512_shuffle_epi8(code_table(kFloat4Codes), w);
  return w;
}

struct Tile512 {
  static constexpr int kRows = 16, kTogether = 1;
  template <int kBits>
  static constexpr bool kUnsigned = true;
  using Floats = __m512;
  using Ints = __m512i;

  static HOCKET_INLINE __m512i words(const std::byte* at) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
  static HOCKET_INLINE Floats halves(const std::byte* at) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  }
  static HOCKET_INLINE Floats unsigned_bytes(const std::byte* at) { return _mm512_cvtepi32_ps(words(at)); }
  static HOCKET_INLINE Floats signed_bytes(const std::byte* at) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))));
  }
  static HOCKET_INLINE Floats low_nibbles(const std::byte* at) {
    return _mm512_cvtepi32_ps(_mm512_and_si512(words(at), _mm512_set1_epi32(0xF)));
  }
  static HOCKET_INLINE Floats high_nibbles(const std::byte* at) {
    return _mm512_cvtepi32_ps(_mm512_srli_epi32(words(at), 4));
  }
  static HOCKET_INLINE Floats powers(const std::byte* at) {
    const __m512i e = words(at), one = _mm512_set1_epi32(1);
    // Exponents 0 and 1 are subnormal numbers: one bit, which the other side is below.
    const __m512i least = _mm512_slli_epi32(_mm512_add_epi32(_mm512_min_epi32(e, one), one), 21);
    return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_slli_epi32(_mm512_sub_epi32(e, one), 23), least));
  }
  static HOCKET_INLINE Floats columns(const float* at) { return _mm512_set1_ps(*at); }
  static HOCKET_INLINE Ints column_ints(const std::byte* at) { return four(at); }
  static HOCKET_INLINE Floats to_floats(Ints v) { return _mm512_cvtepi32_ps(v); }
  static HOCKET_INLINE Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static HOCKET_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static HOCKET_INLINE Floats fnma(Floats a, Floats b, Floats c) { return _mm512_fnmadd_ps(a, b, c); }
  static HOCKET_INLINE Floats zero_floats() { return _mm512_setzero_ps(); }
  static HOCKET_INLINE Ints zero_ints() { return _mm512_setzero_si512(); }
  static HOCKET_INLINE void store(float* at, int64_t, Floats v) { _mm512_storeu_ps(at, v); }

  // The caches' own prefetchers stop at the end of a page.
  template <int kBytes>
  static HOCKET_INLINE void prefetch(const std::byte* at) {
    constexpr int kAhead = 4096;
    for (int i = 0; i < kBytes; i += 64) _mm_prefetch(reinterpret_cast<const char*>(at) + kAhead + i, _MM_HINT_T0);
  }

  // Column after column within a step: each instruction waits for the one before in its own column only.
  template <PackedFormat kFormat, int kFirst, int kEnd, int kColumns>
  static HOCKET_INLINE void multiply(const std::byte* values, const std::byte* x, Ints (&dots)[kColumns]) {
    __m512i w[kEnd - kFirst];
    unrolled<kFirst, kEnd>([&]<int kStep>()
                               __attribute__((always_inline)) { w[kStep - kFirst] = step_of<kFormat, kStep>(values); });
    for (int s = kFirst; s < kEnd; ++s)
      for (int c = 0; c < kColumns; ++c)
        dots[c] = _mm512_dpbusd_epi32(dots[c], w[s - kFirst], four(x + kBlock * c + 4 * s));
  }
};

struct Quantise512 {
  static HOCKET_INLINE uint32_t largest(const float* x, int64_t n) {
    const __m512i positive = _mm512_set1_epi32(0x7FFFFFFF);
    __m512i most = _mm512_setzero_si512();
    for (int64_t k = 0; k < n; k += 16)
      most = _mm512_max_epu32(most, _mm512_and_si512(_mm512_loadu_si512(x + k), positive));
    return _mm512_reduce_max_epu32(most);
  }
  static HOCKET_INLINE void round(const float* x, float inverse, std::byte* bytes, int32_t (&sums)[2]) {
    for (int h = 0; h < 2; ++h) {
      const __m512i q =
          _mm512_max_epi32(_mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + 16 * h), _mm512_set1_ps(inverse))),
                           _mm512_set1_epi32(-127));
      sums[h] = _mm512_reduce_add_epi32(q);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes + 16 * h), _mm512_cvtsepi32_epi8(q));
    }
  }
};

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

struct Isa512 {
  using Vector = Vector512;
  static constexpr QuantiseColumn quantise = hocket::quantise<Quantise512>;
  static constexpr int kMostColumns = static_cast<int>(kPanelColumns);
  static constexpr bool kWholePanels = true;
  static constexpr bool has_tile(int) { return true; }
  template <int kColumns>
  using Tile = Tile512;
  template <PackedFormat kFormat>
  static void product(const std::byte* group, int64_t n_in, const std::byte* panel, int width, float* out,
                      int64_t out_stride) {
    tiled_product<Isa512, kFormat>(group, n_in, panel, width, out, out_stride);
  }
};

}  // namespace

constinit const KernelTable kAvx512VnniKernels = make_table<Isa512>("avx512-vnni");

}  // namespace hocket

#endif
