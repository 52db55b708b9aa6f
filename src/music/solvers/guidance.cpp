#include "music/solvers/guidance.h"

#include <cmath>

#include "base/check.h"

namespace hocket {

std::vector<float> ProjectedGuidance::apply(std::span<const float> cond, std::span<const float> uncond, float scale) {
  constexpr double kMomentum = -0.75;
  constexpr double kLongest = 2.5;  // of a channel of the difference
  constexpr double kNothing = 1e-60;
  CHECK(cond.size() == uncond.size() && (running_.empty() || running_.size() == cond.size()));
  if (running_.empty()) running_.assign(cond.size(), 0.0);
  for (std::size_t i = 0; i < cond.size(); ++i)
    running_[i] = static_cast<double>(cond[i]) - uncond[i] + kMomentum * running_[i];

  std::vector<float> guided(cond.size());
  for (std::size_t c = 0; c < n_channels_; ++c) {
    double length2 = 0, cond2 = 0, dot = 0;
    for (std::size_t i = c; i < cond.size(); i += n_channels_) {
      length2 += running_[i] * running_[i];
      cond2 += static_cast<double>(cond[i]) * cond[i];
      dot += running_[i] * cond[i];
    }
    const double length = std::sqrt(length2);
    const double shrink = length > kLongest ? kLongest / length : 1.0;
    const double along = cond2 > kNothing ? shrink * dot / cond2 : 0.0;
    for (std::size_t i = c; i < cond.size(); i += n_channels_) {
      const double across = shrink * running_[i] - along * cond[i];
      guided[i] = static_cast<float>(cond[i] + (static_cast<double>(scale) - 1.0) * across);
    }
  }
  return guided;
}

}  // namespace hocket
