// music/solvers/sampler.h: the loop from noise to a latent.
//
// Knows nothing of the network: a function gives the velocity of all samples at a time.
//
// Threads  pure function.
// Errors   kCancelled, looked at before each step; what the velocity function returns; kInternal when the result is not
//          finite.
// Source   ace-step.md §7.9.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "music/solvers/solver.h"
#include "music/solvers/wavelet.h"

namespace hocket {

struct SamplerOptions {
  std::vector<float> schedule;  // falling times; the last step ends at 0
  SolverKind solver = SolverKind::kEuler;
  float guidance = 1;  // > 1: the velocity function gives unconditional samples too
  WaveletCorrection wavelet;
  std::vector<uint64_t> seeds;  // of each sample
  std::size_t n_channels = 64;
};

// x [n_channels, n_frames, n_samples] at time t → velocities of the same shape; with guidance those of the conditional
// samples, then those of the unconditional ones.
using VelocityFunction = std::function<Result<std::vector<float>>(std::span<const float> x, float t, std::size_t step)>;
// After each step, with the velocity that was used and where it led.
using StepFunction = std::function<void(std::size_t step, std::span<const float> velocity, std::span<const float> x)>;

Result<std::vector<float>> sample_latents(const SamplerOptions& options, std::vector<float> start,
                                          const VelocityFunction& velocity, const StepFunction& on_step,
                                          const CancelToken& cancel);

}  // namespace hocket
