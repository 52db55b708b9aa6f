// music/solvers/solver.h: moves a sample along its velocity from one time to the next.
//
// The sampled flow is the straight line x_t = t · noise + (1 − t) · x₀.
//
// Owns     what it remembers of earlier steps of one sample.
// Threads  one user at a time.
// Source   ace-step.md S-26, S-27. STORK-4 in closed form: its model of the velocity is a polynomial of the time alone,
//          which a fourth-order method integrates exactly.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace hocket {

enum class SolverKind { kEuler, kSde, kDpm3m, kStork4 };

std::optional<SolverKind> parse_solver(std::string_view name);  // "euler", "sde", "dpm3m", "stork4"

class Solver {
 public:
  virtual ~Solver() = default;
  // x at time t with velocity v goes to t_next < t. `step` counts from 0.
  virtual void advance(std::span<float> x, std::span<const float> v, float t, float t_next, std::size_t step) = 0;
};

// `seed` is that of the sample's first noise (sde draws fresh noise from the seeds after it).
std::unique_ptr<Solver> make_solver(SolverKind kind, uint64_t seed);

}  // namespace hocket
