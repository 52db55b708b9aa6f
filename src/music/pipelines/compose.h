// music/pipelines/compose.h: the language model fills in what a request leaves open: metadata, caption, lyrics, and the
// audio codes that synth turns into sound.
//
// Owns     nothing; borrows the planner.
// Threads  one user at a time.
// Errors   kInvalid naming the field; kOutOfMemory; kCancelled within one token.
// Cost     a pass over the model for each token of the longest variation.
// Source   ace-step.md §6.
#pragma once

#include <optional>
#include <vector>

#include "music/pipelines/progress.h"
#include "music/planner/planner_model.h"
#include "music/planner/planner_prompts.h"

namespace hocket {

// What a request asks the language model for.
struct ComposePlan {
  enum class Prompt { kFill, kInspire, kFormat };
  bool metadata = false;  // phase 1 runs
  bool codes = false;     // phase 2 runs
  Prompt prompt = Prompt::kFill;
  bool writes_lyrics = false;
  float guidance = 1;         // of phase 1
  bool skip_caption = false;  // the caption is locked
};
ComposePlan plan_compose(const MusicRequest& request);

// What compose() refuses before it begins.
Result<void> check_compose(const std::vector<MusicRequest>& requests);

// The sequences that compose() may have side by side, and most tokens of all of them.
struct ComposeSize {
  std::size_t n_seqs = 0, n_tokens = 0;
};
Result<ComposeSize> compose_size(const MusicTokenizer& tokenizer, const std::vector<MusicRequest>& requests);

// One request as `lm_batch_size` variations with neighbouring seeds, or several requests with their own seeds, of one
// mode. Each result is a request that synth takes unchanged. Tokens that were drawn can be looked at, for tests.
struct ComposeTrace {
  std::vector<TokenIds> metadata_tokens;  // of each variation, without the end marker
  std::vector<std::vector<int32_t>> codes;
};
Result<std::vector<MusicRequest>> compose(const PlannerModel& planner, const std::vector<MusicRequest>& requests,
                                          const MusicProgressFunction& progress, const CancelToken& cancel,
                                          ComposeTrace* trace = nullptr);

}  // namespace hocket
