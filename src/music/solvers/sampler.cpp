#include "music/solvers/sampler.h"

#include <cmath>

#include "music/solvers/guidance.h"

namespace hocket {

Result<std::vector<float>> sample_latents(const SamplerOptions& options, std::vector<float> start,
                                          const VelocityFunction& velocity, const StepFunction& on_step,
                                          const CancelToken& cancel) {
  const std::size_t n_samples = options.seeds.size();
  CHECK(n_samples > 0 && start.size() % n_samples == 0);
  const std::size_t n = start.size() / n_samples;
  const bool guided = options.guidance > 1;
  // The correction is made for solvers that do not draw fresh noise.
  const bool corrected = options.wavelet.active() && options.solver != SolverKind::kSde;
  std::vector<std::unique_ptr<Solver>> solvers;
  std::vector<ProjectedGuidance> guidance;
  for (const uint64_t seed : options.seeds) {
    solvers.push_back(make_solver(options.solver, seed));
    guidance.emplace_back(options.n_channels);
  }

  std::vector<float> x = std::move(start);
  for (std::size_t k = 0; k < options.schedule.size(); ++k) {
    if (cancel.cancelled()) return Error(ErrorCode::kCancelled, "cancelled");
    const float t = options.schedule[k];
    TRY_ASSIGN(std::vector<float> v, velocity(x, t, k));
    CHECK(v.size() == (guided ? 2 : 1) * x.size());
    if (guided) {
      std::vector<float> used;
      for (std::size_t i = 0; i < n_samples; ++i) {
        const std::vector<float> one = guidance[i].apply(
            std::span(v).subspan(i * n, n), std::span(v).subspan((n_samples + i) * n, n), options.guidance);
        used.insert(used.end(), one.begin(), one.end());
      }
      v = std::move(used);
    }
    const bool last = k + 1 == options.schedule.size();
    for (std::size_t i = 0; i < n_samples; ++i) {
      const std::span xi = std::span(x).subspan(i * n, n);
      const std::span vi = std::span<const float>(v).subspan(i * n, n);
      if (last) {
        for (std::size_t j = 0; j < n; ++j) xi[j] -= vi[j] * t;
        continue;
      }
      const float t_next = options.schedule[k + 1];
      solvers[i]->advance(xi, vi, t, t_next, k);
      if (corrected) correct_step(xi, vi, options.n_channels, t, t_next, options.wavelet);
    }
    if (on_step) on_step(k, v, x);
  }
  for (const float value : x)
    if (!std::isfinite(value))
      return Error(ErrorCode::kInternal, "the sampler's result has values that are not finite");
  return x;
}

}  // namespace hocket
