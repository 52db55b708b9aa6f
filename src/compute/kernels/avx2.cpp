// AVX2: unsigned by signed bytes, added up in 16 bits for as long as they fit: products of two bytes by
// `vpmaddubsw` are at most 2 · (2^bits − 1) · 127, so 8 of up to 4 bits, 4 of 5 bits or 2 of 6 bits are added before
// they are widened.
#if defined(__x86_64__)

#include "compute/kernels/wide256.h"

namespace hocket {
namespace {

struct Maddubs {
  // Weights of 8 bits do not fit beside activations of 8 bits: they are multiplied as signed numbers, without a zero.
  template <int kBits>
  static constexpr bool kUnsigned = kBits != 8;

  // Adds steps 2v and 2v + 1; it is pair `at` of `n`, which are a run.
  template <int kBits>
  static HOCKET_INLINE void pair(__m256i lo, __m256i hi, const std::byte* x, int at, int n, __m256i& dot,
                                 __m256i& sum16) {
    const __m256i ones = _mm256_set1_epi16(1);
    if constexpr (kBits == 8) {
      const __m256i flip = _mm256_set1_epi8(static_cast<char>(0x80));
      for (int i = 0; i < 2; ++i) {
        const __m256i w = _mm256_xor_si256(i == 0 ? lo : hi, flip);
        const __m256i products = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(four(x + 4 * i), w));
        dot = _mm256_add_epi32(dot, _mm256_madd_epi16(products, ones));
      }
    } else {
      const __m256i products =
          _mm256_add_epi16(_mm256_maddubs_epi16(lo, four(x)), _mm256_maddubs_epi16(hi, four(x + 4)));
      constexpr int kPairs = kBits <= 4 ? 4 : kBits == 5 ? 2 : 1;
      sum16 = at % kPairs == 0 ? products : _mm256_add_epi16(sum16, products);
      if (at % kPairs == kPairs - 1 || at == n - 1) dot = _mm256_add_epi32(dot, _mm256_madd_epi16(sum16, ones));
    }
  }
};

}  // namespace

constinit const KernelTable kAvx2Kernels = make_table<Isa256<Maddubs>>("avx2");

}  // namespace hocket

#endif
