#include "music/solvers/schedule.h"

#include <cmath>
#include <cstdlib>
#include <string>

namespace hocket {

std::vector<float> make_schedule(int steps, float shift) {
  std::vector<float> schedule;
  for (int i = 0; i < steps; ++i) {
    const float t = 1.0f - static_cast<float>(i) / static_cast<float>(steps);
    schedule.push_back(shift * t / (1.0f + (shift - 1.0f) * t));
  }
  return schedule;
}

std::optional<std::vector<float>> parse_timesteps(std::string_view text) {
  std::vector<float> times;
  const std::string owned(text);
  const char* at = owned.c_str();
  while (*at != '\0') {
    char* end = nullptr;
    const float value = std::strtof(at, &end);
    if (end == at || !std::isfinite(value)) break;
    times.push_back(value);
    at = end;
    while (*at == ',' || *at == ' ') ++at;
  }
  if (times.size() < 2) return std::nullopt;
  times.pop_back();
  return times;
}

}  // namespace hocket
