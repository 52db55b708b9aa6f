// NEON with the dot product of bytes (Armv8.2 DotProd): 4 · 4 multiply-adds an instruction.
#if defined(__aarch64__)

#include "compute/kernels/neon.h"

namespace hocket {
namespace {

struct IsaDotprod {
  using Vector = VectorNeon;
  static constexpr QuantiseColumn quantise = hocket::quantise<QuantiseNeon>;
  static constexpr int kMostColumns = 4;
  static constexpr bool kWholePanels = false;
  static constexpr bool has_tile(int n) { return n != 3; }
  // 8 rows of 4 columns, or 16 of fewer, which is what 32 registers hold.
  template <int kColumns>
  using Tile = TileDot<kColumns == 4 ? 2 : 4>;
  template <PackedFormat kFormat>
  static void product(const std::byte* group, int64_t n_in, const std::byte* panel, int width, float* out,
                      int64_t out_stride) {
    tiled_product<IsaDotprod, kFormat>(group, n_in, panel, width, out, out_stride);
  }
};

}  // namespace

constinit const KernelTable kNeonDotprodKernels = make_table<IsaDotprod>("neon-dotprod");

}  // namespace hocket

#endif
