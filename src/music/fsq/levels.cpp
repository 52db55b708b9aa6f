#include "music/fsq/levels.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace hocket {

FsqLevels::FsqLevels(std::vector<int64_t> levels) : levels_(std::move(levels)) {
  for (const int64_t level : levels_) n_codes_ *= level;
}

void FsqLevels::values(int64_t code, std::span<float> out) const {
  CHECK(code >= 0 && out.size() == levels_.size());
  for (std::size_t d = 0; d < levels_.size(); ++d) {
    const float half = static_cast<float>(levels_[d] - 1) / 2.0f;
    out[d] = static_cast<float>(code % levels_[d]) / half - 1.0f;
    code /= levels_[d];
  }
}

int64_t FsqLevels::code(std::span<const float> x) const {
  CHECK(x.size() == levels_.size());
  int64_t code = 0, stride = 1;
  for (std::size_t d = 0; d < levels_.size(); ++d) {
    const auto top = static_cast<float>(levels_[d] - 1);
    const float step = std::floor(top * (std::tanh(x[d]) + 1.0f) / 2.0f + 0.5f);
    // NaN, too, becomes the first step.
    const int64_t digit = step >= 0 ? std::min(static_cast<int64_t>(step), levels_[d] - 1) : 0;
    code += digit * stride;
    stride *= levels_[d];
  }
  return code;
}

}  // namespace hocket
