// music/solvers/guidance.h: adaptive projected guidance: pushes away from the unconditional velocity, but not along the
// conditional one.
//
// Owns     the running difference of one sample.
// Threads  one user at a time.
// Source   ace-step.md S-25 (Sadat et al., 2024: "Eliminating Oversaturation and Artifacts of High Guidance Scales").
#pragma once

#include <span>
#include <vector>

namespace hocket {

class ProjectedGuidance {
 public:
  explicit ProjectedGuidance(std::size_t n_channels) : n_channels_(n_channels) {}

  // cond, uncond [n_channels, n_frames] of the present step → the velocity to use.
  std::vector<float> apply(std::span<const float> cond, std::span<const float> uncond, float scale);

 private:
  std::size_t n_channels_;
  std::vector<double> running_;
};

}  // namespace hocket
