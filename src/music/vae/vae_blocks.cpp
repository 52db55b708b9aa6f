#include "music/vae/vae_blocks.h"

#include <fmt/format.h>

namespace hocket {

namespace {
constexpr int64_t kMostStride = 64;
}

Result<int64_t> resampling_stride(const TensorInfo& kernel) {
  const int64_t stride = kernel.ne[0] / 2;
  if (kernel.ne[0] % 4 != 0 || stride > kMostStride)
    return Error(ErrorCode::kBadModel,
                 fmt::format("tensor {} has a kernel of {}, expected twice an even stride", kernel.name, kernel.ne[0]),
                 kernel.name);
  return stride;
}

std::vector<ResidualUnit> residual_units(DerivedWeights& weights, const std::string& prefix, int64_t n_channels) {
  std::vector<ResidualUnit> units;
  for (std::size_t r = 0; r < kDilations.size(); ++r)
    units.push_back(
        ResidualUnit::make(weights, fmt::format("{}res_unit{}.", prefix, r + 1), n_channels, kDilations[r]));
  return units;
}

}  // namespace hocket
