// music/pipelines/track_batch.h: which requests may run as one batch, and as which tracks.
//
// Threads  pure functions.
// Errors   kInvalid naming the field: out of range, no caption where one is needed, or a value that the requests of a
//          batch must share and do not.
// Source   ace-step.md §7.3, S-33, L-32, D-4, D-25.
#pragma once

#include <vector>

#include "music/request.h"

namespace hocket {

inline constexpr std::size_t kMostTracks = 9;

// Each request as `synth_batch_size` tracks with the seeds seed, seed + 1, …; a negative seed is drawn first. 9 tracks
// at most: more are refused.
Result<std::vector<MusicRequest>> expand_tracks(const std::vector<MusicRequest>& requests);

// Negative: 32 random bits.
int64_t resolve_seed(int64_t seed);

}  // namespace hocket
