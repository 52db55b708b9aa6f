// The reference: plain C++, one value after the other, with the operations and the order of every other table.
#include <cmath>
#include <cstring>

#include "compute/kernels/half.h"
#include "compute/kernels/quantise_impl.h"
#include "compute/kernels/stored.h"
#include "compute/kernels/table_impl.h"

namespace hocket {
namespace {

template <typename T>
T item(const std::byte* at, int64_t i) {
  T value;
  std::memcpy(&value, at + static_cast<std::size_t>(i) * sizeof(T), sizeof value);
  return value;
}

template <PackedFormat kFormat>
void plain_product(const std::byte* group, int64_t n_in, const std::byte* panel, int width, float* out,
                   int64_t out_stride) {
  constexpr FormatLayout kLayout = layout_of(kFormat);
  constexpr ActivationForm kForm = form_of(kLayout);
  constexpr ScaleRecord kRecord = record_of(kLayout.scales);
  const std::byte* scales = group + group_value_bytes(kLayout, n_in);
  const std::byte* x_scales = panel + panel_scales_at(n_in, width);
  const std::byte* x_sums = panel + panel_sums_at(kForm, n_in, width);
  for (int64_t column = 0; column < width; ++column)
    for (int64_t row = 0; row < kGroupRows; ++row) {
      float sum = 0, part = 0;
      for (int64_t k0 = 0; k0 < n_in; k0 += kForm.sum_block) {
        const int64_t block = k0 / kBlock, i_sum = k0 / kForm.sum_block * width + column;
        const auto* values = reinterpret_cast<const uint8_t*>(group) + block * value_bytes(kLayout.bits);
        int32_t dot = kForm.sums == Sums::kZero ? item<int32_t>(x_sums, i_sum) : 0;
        for (int64_t k = k0; k < k0 + kForm.sum_block; ++k)
          dot += stored_value(kLayout, values, row, k % kBlock) *
                 item<int8_t>(panel, (block * width + column) * kBlock + k % kBlock);
        const float x_scale = item<float>(x_scales, k0 / kForm.scale_block * width + column);
        const ScaleAndMinimum of = scale_at(kLayout.scales, scales + k0 / kRecord.block * kRecord.bytes,
                                            k0 % kRecord.block / kRecord.sub_block, row);
        if constexpr (kRecord.block == kBlock) {
          sum = std::fma(static_cast<float>(dot) * x_scale, of.scale, sum);
          if constexpr (kRecord.minimum) sum = std::fma(of.minimum, item<float>(x_sums, i_sum), sum);
        } else {
          part = std::fma(static_cast<float>(dot), of.scale, part);
          if constexpr (kRecord.minimum) part = std::fma(of.minimum, item<float>(x_sums, i_sum), part);
          if ((k0 + kForm.sum_block) % kSuperBlock == 0) {
            sum = std::fma(part, x_scale, sum);
            part = 0;
          }
        }
      }
      out[column * out_stride + row] = sum;
    }
}

void quantise_plainly(const float* x, int64_t first, int64_t end, const ActivationForm& form, int64_t n_in,
                      std::byte* panel, int width, int column) {
  if (form.scale_block == 1) return place_floats(x, first, end, panel, width, column);
  for (int64_t k0 = first; k0 < end; k0 += form.scale_block) {
    uint32_t largest = 0;  // as bits, so that a NaN is the largest of all
    for (int64_t k = k0; k < k0 + form.scale_block; ++k) {
      uint32_t bits;
      std::memcpy(&bits, x + k, sizeof bits);
      bits &= 0x7FFFFFFFu;
      if (bits > largest) largest = bits;
    }
    float amax;
    std::memcpy(&amax, &largest, sizeof amax);
    const bool nothing = amax < kSmallestActivation;
    const float scale = nothing ? 0.0f : amax / 127.0f, inverse = nothing ? 0.0f : 127.0f / amax;
    std::memcpy(panel + panel_scales_at(n_in, width) + 4 * (k0 / form.scale_block * width + column), &scale, 4);
    for (int64_t k1 = k0; k1 < k0 + form.scale_block; k1 += form.sum_block) {
      int32_t sum = 0;
      for (int64_t k = k1; k < k1 + form.sum_block; ++k) {
        const float scaled = x[k] * inverse;
        // Out of range only where the scale is not finite, and then the result is not, either.
        const int value = scaled >= -127.5f && scaled <= 127.5f ? static_cast<int>(std::nearbyint(scaled)) : -127;
        panel[(k / kBlock * width + column) * kBlock + k % kBlock] = static_cast<std::byte>(value);
        sum += value;
      }
      place_sum(form, panel + panel_sums_at(form, n_in, width), k1 / form.sum_block * width + column, sum, scale);
    }
  }
}

struct Plain {
  static constexpr bool kWide = false;
  float lane[16];

  template <typename F>
  static Plain each(const F& f) {
    Plain v;
    for (int i = 0; i < 16; ++i) v.lane[i] = f(i);
    return v;
  }
  static Plain load(const float* at) {
    return each([&](int i) { return at[i]; });
  }
  static Plain load_half(const uint16_t* at) {
    return each([&](int i) { return half_to_float(at[i]); });
  }
  static Plain load_bf16(const uint16_t* at) {
    return each([&](int i) { return bfloat_to_float(at[i]); });
  }
  static void store(float* at, const Plain& v) { std::memcpy(at, v.lane, sizeof v.lane); }
  static Plain splat(float x) {
    return each([&](int) { return x; });
  }
  static Plain fma(const Plain& a, const Plain& b, const Plain& c) {
    return each([&](int i) { return std::fma(a.lane[i], b.lane[i], c.lane[i]); });
  }
  static Plain add(const Plain& a, const Plain& b) {
    return each([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  static Plain mul(const Plain& a, const Plain& b) {
    return each([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  // The second where one is a NaN.
  static Plain max(const Plain& a, const Plain& b) {
    return each([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static Plain round(const Plain& a) {
    return each([&](int i) { return std::nearbyint(a.lane[i]); });
  }
  static float most(const Plain& v) {
    float most = v.lane[0];
    for (const float x : v.lane) most = x > most ? x : most;
    return most;
  }
  static Plain sums(const Plain* v) {
    return each([&](int i) {
      float four[4];
      for (int j = 0; j < 4; ++j) {
        const float* x = v[i].lane + 4 * j;
        four[j] = (x[0] + x[2]) + (x[1] + x[3]);
      }
      return (four[0] + four[2]) + (four[1] + four[3]);
    });
  }
  static Plain zero_where_below(const Plain& x, const Plain& low, const Plain& y) {
    return each([&](int i) { return x.lane[i] < low.lane[i] ? 0.0f : y.lane[i]; });
  }
  static Plain minus_infinity_where(const Plain& mask, const Plain& y) {
    return each([&](int i) { return mask.lane[i] == -INFINITY ? -INFINITY : y.lane[i]; });
  }
  static Plain times_power_of_two(const Plain& y, const Plain& n) {
    return each(
        [&](int i) { return std::isnan(n.lane[i]) ? y.lane[i] : std::ldexp(y.lane[i], static_cast<int>(n.lane[i])); });
  }
};

struct Portable {
  using Vector = Plain;
  static constexpr QuantiseColumn quantise = quantise_plainly;
  template <PackedFormat kFormat>
  static constexpr GroupProduct product = plain_product<kFormat>;
};

}  // namespace

constinit const KernelTable kPortableKernels = make_table<Portable>("portable");

}  // namespace hocket
