// music/pipelines/context.h: what the transformer sees beside the noise: source frames and a mask of what to make.
//
// Threads  pure functions.
// Cost     one copy of the frames.
// Source   ace-step.md §7.6.
#pragma once

#include <span>
#include <vector>

#include "music/dit/dit_file.h"
#include "music/pipelines/synth_plan.h"

namespace hocket {

// [2 · n_channels, n_frames]: silence, mask 1.
std::vector<float> silent_context(const DitFile& dit, int64_t n_frames);
// Decoded codes, then silence from its beginning; mask 1.
std::vector<float> code_context(const DitFile& dit, int64_t n_frames, std::span<const float> decoded);
// The source, with silence behind it; in a region the mask is 1, and repainting hides the source there.
std::vector<float> source_context(const DitFile& dit, const SynthPlan& plan, bool hide_region,
                                  std::span<const float> source);

// A latent with `before` and `after` frames of silence around it, both from the beginning of silence.
std::vector<float> pad_latent(const DitFile& dit, std::span<const float> latent, int64_t before, int64_t after);

}  // namespace hocket
