// music/pipelines/understand.h: from sound back to words: codes, then metadata and lyrics that describe them.
//
// Threads  one user at a time.
// Errors   kInvalid naming the field; kOutOfMemory; kCancelled.
// Cost     one encoding of the audio, then a pass over the language model for each token.
// Source   ace-step.md §8.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "music/dit/dit_file.h"
#include "music/pipelines/progress.h"
#include "music/pipelines/synth.h"
#include "music/planner/planner_model.h"

namespace hocket {

// What a request for understanding has where its text says nothing.
MusicRequest understand_defaults();

struct HeardSong {
  std::vector<float> latent;  // [n_channels, n_frames]
  std::vector<int32_t> codes;
};

// The latent of the sound (encoded when it is audio) and its codes.
Result<HeardSong> hear(const std::shared_ptr<const DitFile>& dit, const std::string& vae_path, const SynthSound& sound,
                       const Tiling& tiling, const MusicCompute& compute, Residency& models,
                       const MusicProgressFunction& progress, const CancelToken& cancel);

// Most tokens that understand() may need.
Result<std::size_t> understand_size(const MusicTokenizer& tokenizer, const std::vector<int32_t>& codes);

// A request that describes these codes and holds them; it can go to compose or synth.
Result<MusicRequest> understand(const PlannerModel& planner, const std::vector<int32_t>& codes,
                                const MusicRequest& request, const MusicProgressFunction& progress,
                                const CancelToken& cancel);

}  // namespace hocket
