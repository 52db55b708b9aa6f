// compute/kernels/quantise_impl.h: QuantiseColumn of kernel_table.h over a type Q, which each instruction set brings:
//
//   largest(x, n)                     the largest of n values without their signs, as bits, so that a NaN is the
//   largest
//                                     of all; n is a multiple of 32
//   round(x, inverse, bytes, sums)    32 values times `inverse`, rounded to the nearest (ties to even); −127 where that
//                                     does not fit, which is where the scale is not finite, either. Sums of each 16.
//
// All is of internal linkage: the including files are compiled for instructions that not every CPU has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/kernels/float_impl.h"
#include "compute/kernels/format.h"

namespace hocket {
namespace {

// Activations below this count as zeros: the inverse of their scale would overflow.
constexpr float kSmallestActivation = 1e-36f;

// `sum` is that of the rounded values of sum block i.
inline void place_sum(const ActivationForm& form, std::byte* sums, int64_t i, int32_t sum, float scale) {
  if (form.sums == Sums::kZero)
    reinterpret_cast<int32_t*>(sums)[i] = -form.zero * sum;
  else
    reinterpret_cast<float*>(sums)[i] =
        form.sums == Sums::kScaled ? scale * static_cast<float>(sum) : static_cast<float>(sum);
}

template <typename Q>
void quantise(const float* x, int64_t first, int64_t end, const ActivationForm& form, int64_t n_in, std::byte* panel,
              int width, int column) {
  if (form.scale_block == 1) return place_floats(x, first, end, panel, width, column);
  auto* scales = reinterpret_cast<float*>(panel + panel_scales_at(n_in, width));
  std::byte* sums = panel + panel_sums_at(form, n_in, width);
  for (int64_t k0 = first; k0 < end; k0 += form.scale_block) {
    const uint32_t bits = Q::largest(x + k0, form.scale_block);
    float amax;
    __builtin_memcpy(&amax, &bits, sizeof amax);
    const bool nothing = amax < kSmallestActivation;
    const float scale = nothing ? 0.0f : amax / 127.0f, inverse = nothing ? 0.0f : 127.0f / amax;
    scales[k0 / form.scale_block * width + column] = scale;
    for (int64_t k = k0; k < k0 + form.scale_block; k += kBlock) {
      int32_t part[2];
      Q::round(x + k, inverse, panel + (k / kBlock * width + column) * kBlock, part);
      if (form.sum_block == 16)
        for (int h = 0; h < 2; ++h) place_sum(form, sums, (k / 16 + h) * width + column, part[h], scale);
      else
        place_sum(form, sums, k / kBlock * width + column, part[0] + part[1], scale);
    }
  }
}

}  // namespace
}  // namespace hocket
