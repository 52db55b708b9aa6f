// AVX-VNNI: vectors of 256 bits with the dot product of bytes, for CPUs that have it without AVX-512.
#if defined(__x86_64__)

#include "compute/kernels/wide256.h"

namespace hocket {
namespace {

struct Vnni {
  template <int kBits>
  static constexpr bool kUnsigned = true;

  template <int kBits>
  static HOCKET_INLINE void pair(__m256i lo, __m256i hi, const std::byte* x, int, int, __m256i& dot, __m256i&) {
    dot = _mm256_dpbusd_avx_epi32(dot, lo, four(x));
    dot = _mm256_dpbusd_avx_epi32(dot, hi, four(x + 4));
  }
};

}  // namespace

constinit const KernelTable kAvxVnniKernels = make_table<Isa256<Vnni>>("avx-vnni");

}  // namespace hocket

#endif
