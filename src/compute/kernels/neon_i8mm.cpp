// NEON with products of matrices of bytes (Armv8.6 I8MM): 2 rows by 2 columns of 8 k, 32 multiply-adds an instruction.
//
// Sums of two columns stand side by side in a vector, as the instruction makes them, until they are stored. What
// unpacking yields, 4 rows of 4 k, has to be zipped to 2 rows of 8 k, once for all columns of a tile: so tiles are
// wide.
#if defined(__aarch64__)

#include "compute/kernels/neon.h"

namespace hocket {
namespace {

// A vector is 2 rows of two columns: row 0 of both, row 1 of both.
struct TwoColumns {
  static HOCKET_INLINE void spread(float32x4_t rows, float32x4_t* to) {
    to[0] = vzip1q_f32(rows, rows);
    to[1] = vzip2q_f32(rows, rows);
  }
  static HOCKET_INLINE float32x4_t columns(const float* at) {
    const float32x2_t two = vld1_f32(at);
    return vcombine_f32(two, two);
  }
  static HOCKET_INLINE int32x4_t columns(const int32_t* at) {
    const int32x2_t two = vld1_s32(at);
    return vcombine_s32(two, two);
  }
};

template <int kGroups>
struct TilePairs : TileNeon<kGroups, 2 * kGroups, TwoColumns> {
  static constexpr int kTogether = 2;
  template <int kBits>
  static constexpr bool kUnsigned = true;
  using typename TileNeon<kGroups, 2 * kGroups, TwoColumns>::Floats;
  using typename TileNeon<kGroups, 2 * kGroups, TwoColumns>::Ints;

  static HOCKET_INLINE void store(float* at, int64_t stride, const Floats& v) {
    for (int i = 0; i < kGroups; ++i) {
      vst1q_f32(at + 4 * i, vuzp1q_f32(v.v[2 * i], v.v[2 * i + 1]));
      vst1q_f32(at + stride + 4 * i, vuzp2q_f32(v.v[2 * i], v.v[2 * i + 1]));
    }
  }

  template <PackedFormat kFormat, int kFirst, int kEnd, int kPairs>
  static HOCKET_INLINE void multiply(const std::byte* values, const std::byte* x, Ints (&dots)[kPairs]) {
    unrolled<kFirst / 2, kEnd / 2>([&]<int kTwo>() __attribute__((always_inline)) {
      int8x16_t columns[kPairs];  // 8 k of both
      for (int p = 0; p < kPairs; ++p) {
        const auto* at = reinterpret_cast<const int8_t*>(x + 2 * kBlock * p + 8 * kTwo);
        columns[p] = vcombine_s8(vld1_s8(at), vld1_s8(at + kBlock));
      }
      for (int i = 0; i < kGroups; ++i) {
        const uint32x4_t a = vreinterpretq_u32_u8(step_of<kFormat, 2 * kTwo>(values + 16 * i));
        const uint32x4_t b = vreinterpretq_u32_u8(step_of<kFormat, 2 * kTwo + 1>(values + 16 * i));
        const uint8x16_t first = vreinterpretq_u8_u32(vzip1q_u32(a, b)), last = vreinterpretq_u8_u32(vzip2q_u32(a, b));
        for (int p = 0; p < kPairs; ++p) {
          dots[p].v[2 * i] = vusmmlaq_s32(dots[p].v[2 * i], first, columns[p]);
          dots[p].v[2 * i + 1] = vusmmlaq_s32(dots[p].v[2 * i + 1], last, columns[p]);
        }
      }
    });
  }
};

template <int kColumns>
struct TileI8mm {
  using Type = TilePairs<8 / kColumns>;
};
template <>
struct TileI8mm<1> {
  using Type = TileDot<4>;
};

struct IsaI8mm {
  using Vector = VectorNeon;
  static constexpr QuantiseColumn quantise = hocket::quantise<QuantiseNeon>;
  static constexpr int kMostColumns = 8;
  static constexpr bool kWholePanels = false;
  static constexpr bool has_tile(int n) { return n == 8 || n == 4 || n == 2 || n == 1; }
  // 4 rows of 8 columns, 8 of 4, or 16 of fewer, which is what 32 registers hold.
  template <int kColumns>
  using Tile = typename TileI8mm<kColumns>::Type;
  template <PackedFormat kFormat>
  static void product(const std::byte* group, int64_t n_in, const std::byte* panel, int width, float* out,
                      int64_t out_stride) {
    tiled_product<IsaI8mm, kFormat>(group, n_in, panel, width, out, out_stride);
  }
};

}  // namespace

constinit const KernelTable kNeonI8mmKernels = make_table<IsaI8mm>("neon-i8mm");

}  // namespace hocket

#endif
