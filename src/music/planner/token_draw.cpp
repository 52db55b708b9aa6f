#include "music/planner/token_draw.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace hocket {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

void keep_top_k(std::span<float> logits, std::size_t k) {
  std::vector<float> sorted(logits.begin(), logits.end());
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(k - 1), sorted.end(),
                   std::greater<float>());
  const float threshold = sorted[k - 1];
  for (float& value : logits)
    if (value < threshold) value = kNever;
}

void keep_top_p(std::span<float> logits, float p) {
  constexpr float kNegligible = 16;
  const float highest = *std::max_element(logits.begin(), logits.end());
  float total = 0;
  for (const float value : logits) total += std::exp(value - highest);
  std::vector<std::pair<float, std::size_t>> likely;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] < highest - kNegligible) {
      logits[i] = kNever;
    } else {
      likely.emplace_back(std::exp(logits[i] - highest) / total, i);
    }
  }
  std::stable_sort(likely.begin(), likely.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  float before = 0;
  for (std::size_t rank = 0; rank < likely.size(); ++rank) {
    if (rank > 0 && before >= p) logits[likely[rank].second] = kNever;
    before += likely[rank].first;
  }
}

}  // namespace

float TokenDraw::fraction() {
  const float f = static_cast<float>(static_cast<uint32_t>(random_())) * 0x1.0p-32f;
  return std::min(f, std::nextafter(1.0f, 0.0f));
}

std::size_t TokenDraw::draw(std::span<float> logits, const DrawOptions& options) {
  if (options.temperature <= 0)
    return static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  const float factor = 1.0f / options.temperature;
  for (float& value : logits) value *= factor;
  if (options.top_k > 0 && static_cast<std::size_t>(options.top_k) < logits.size())
    keep_top_k(logits, static_cast<std::size_t>(options.top_k));
  if (options.top_p > 0 && options.top_p < 1) keep_top_p(logits, options.top_p);

  const float highest = *std::max_element(logits.begin(), logits.end());
  float total = 0;
  for (float& value : logits) {
    value = std::exp(value - highest);
    total += value;
  }
  const float wanted = total * fraction();
  float sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    sum += logits[i];
    if (sum >= wanted) return i;
  }
  return 0;
}

}  // namespace hocket
