// engine/prompt_lane.h: the runner's sequences, and what is kept of a prompt for the next request.
//
// Sequence 0 holds the prompt. A following request of the same tenant continues from the longest common beginning when
// that gives exactly the logits of a cold run: it keeps whole chunks only (n_batch tokens that went through one step),
// or the whole prompt with the logits of its last token when both prompts are equal. State that came from generated
// tokens is never kept.
//
// Owns     the record of sequence 0 and a copy of one row of logits. Borrows the runner and what drafts for it.
// Threads  one user at a time.
// Errors   prefill(): those of the steps and of `hooks`.
// Cost     a comparison of token ids beside the steps that are left.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "engine/drafting.h"
#include "lm/runner.h"
#include "runtime/generation.h"

namespace hocket {

class PromptLane {
 public:
  // `drafting` may be nullptr.
  explicit PromptLane(LmRunner& runner, const Drafting* drafting = nullptr) : runner_(&runner), drafting_(drafting) {}

  static constexpr SeqId kPromptSeq = 0;

  LmRunner& runner() { return *runner_; }
  // Its source has begun the present prompt after prefill().
  const Drafting* drafting() const { return drafting_; }

  struct Filled {
    std::size_t n_cached = 0;         // tokens that needed no step
    std::span<const float> last_row;  // logits after the last token; valid until the next call
  };
  // Brings sequence 0 to hold exactly `tokens` (at least one). Nothing is kept when hooks.every_row asks for all rows.
  Result<Filled> prefill(std::span<const TokenId> tokens, const std::string& tenant, const PrefillHooks& hooks,
                         const CancelToken& cancel);

  // Sequence 0 was used for something else than a prompt: nothing of it can be kept.
  void forget();
  // Empties all sequences but 0.
  void clear_forks();

 private:
  std::size_t reusable(std::span<const TokenId> tokens, const std::string& tenant) const;

  LmRunner* runner_;
  const Drafting* drafting_;
  std::vector<TokenId> tokens_;  // of sequence 0, evaluated in chunks
  std::string tenant_;
  std::vector<float> last_row_;  // after all of tokens_; empty while a prefill is incomplete
};

}  // namespace hocket
