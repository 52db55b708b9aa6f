#include "audio/normalise.h"

#include <algorithm>
#include <cmath>

namespace hocket {

void normalise_peak(StereoAudio& audio, int peak_clip) {
  constexpr float kSilence = 1e-6f;
  const double clip = std::clamp(peak_clip, 0, 999) / 1e6;
  std::vector<float> levels;
  levels.reserve(audio.left.size() + audio.right.size());
  for (const auto* channel : {&audio.left, &audio.right})
    for (const float sample : *channel) levels.push_back(std::abs(sample));
  if (levels.empty()) return;
  const auto rank = static_cast<std::ptrdiff_t>(static_cast<double>(levels.size() - 1) * (1.0 - clip));
  std::nth_element(levels.begin(), levels.begin() + rank, levels.end());
  const float reference = levels[static_cast<std::size_t>(rank)];
  if (!(reference >= kSilence)) return;
  const float gain = 1.0f / reference;
  for (auto* channel : {&audio.left, &audio.right})
    for (float& sample : *channel) sample = std::clamp(sample * gain, -1.0f, 1.0f);
}

}  // namespace hocket
