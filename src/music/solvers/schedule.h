// music/solvers/schedule.h: at which times the flow is evaluated.
//
// Threads  pure functions.
// Source   ace-step.md S-1.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace hocket {

// Falling times from 1 towards 0; the step after the last ends at 0.
std::vector<float> make_schedule(int steps, float shift);

// "0.97,0.7,0.4,0": the last one is the end and no step of its own. nullopt when there are fewer than two numbers.
std::optional<std::vector<float>> parse_timesteps(std::string_view text);

}  // namespace hocket
