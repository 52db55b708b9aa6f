// music/pipelines/synth_plan.h: everything about a synthesis that follows from numbers alone: length, region, schedule.
//
// Made before any model is loaded, so that a request that cannot work is refused at once.
//
// Threads  pure functions.
// Errors   kInvalid naming the field: no source for a task that needs one, an empty region, too long a song.
// Source   ace-step.md §§7.1, 7.3, 7.4, S-15, S-20.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "music/request.h"

namespace hocket {

// How long the source is; both zero: there is none.
struct SourceLength {
  int64_t n_samples = 0;  // of audio at 48 kHz
  int64_t n_frames = 0;   // of a latent
  bool given() const { return n_samples > 0 || n_frames > 0; }
};

struct SynthModelFacts {
  bool turbo = false;
  int64_t patch = 2;
  int64_t max_frames = 15'000;
  bool has_null_condition = true;
};

struct SynthPlan {
  std::string instruction;
  bool from_source = false;  // the context is the source
  bool from_codes = false;   // the context is decoded codes
  bool from_region = false;  // only frames [region_first, region_last) are made
  bool round_trip = false;   // the source passes through the codes first (cover)
  int steps = 0;             // of the whole schedule
  float guidance = 1, shift = 1, duration_s = 0;
  bool guided = false;
  std::vector<float> schedule;       // what is run
  std::optional<float> start_level;  // start from this much noise over the source
  std::optional<std::size_t> switch_step;
  int64_t n_frames = 0;                   // of the result, a multiple of the patch
  int64_t n_source_frames = 0;            // with padding
  int64_t pad_before = 0, pad_after = 0;  // of the source: samples of audio, frames of a latent
  int64_t region_first = 0, region_last = 0;
};

// `n_codes`: the longest list of codes among the requests that run together; the others share what is planned here.
Result<SynthPlan> plan_synth(const MusicRequest& request, std::size_t n_codes, const SourceLength& source,
                             const SynthModelFacts& model);

}  // namespace hocket
