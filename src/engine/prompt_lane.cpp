#include "engine/prompt_lane.h"

#include <algorithm>

#include "base/check.h"
#include "runtime/speculative/draft_prefill.h"

namespace hocket {

std::size_t PromptLane::reusable(std::span<const TokenId> tokens, const std::string& tenant) const {
  if (tenant != tenant_ || tokens_.empty()) return 0;
  const SequenceMemory& memory = runner_->memory();
  const std::size_t n_both = std::min(tokens.size(), tokens_.size());
  const std::size_t n_same =
      std::mismatch(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(n_both), tokens.begin()).first -
      tokens_.begin();
  if (n_same == tokens.size() && n_same == tokens_.size() && !last_row_.empty() &&
      memory.can_truncate(kPromptSeq, n_same)) {
    return n_same;
  }
  // Whole chunks, and at least one token left to evaluate.
  const std::size_t n_batch = runner_->options().n_batch;
  const std::size_t n_most = std::min(n_same, tokens.size() - 1);
  std::size_t n = n_most / n_batch * n_batch;
  while (n > 0 && !memory.can_truncate(kPromptSeq, n)) n -= n_batch;
  return n;
}

Result<PromptLane::Filled> PromptLane::prefill(std::span<const TokenId> tokens, const std::string& tenant,
                                               const PrefillHooks& hooks, const CancelToken& cancel) {
  CHECK(!tokens.empty());
  SequenceMemory& memory = runner_->memory();
  const std::size_t n_cached = hooks.every_row ? 0 : reusable(tokens, tenant);
  if (drafting_) TRY(drafting_->source->begin(n_cached));
  if (n_cached == tokens.size()) {
    TRY(memory.truncate(kPromptSeq, n_cached));
    return Filled{n_cached, last_row_};
  }
  last_row_.clear();
  if (n_cached > 0) {
    TRY(memory.truncate(kPromptSeq, n_cached));
  } else {
    memory.clear(kPromptSeq);
  }
  tokens_.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n_cached));
  tenant_ = tenant;

  PrefillHooks recording = hooks;
  recording.on_progress = [&](std::size_t n_done) -> Result<void> {
    tokens_.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n_done));
    if (n_done % runner_->options().n_batch == 0) runner_->memory().checkpoint(kPromptSeq);
    return hooks.on_progress ? hooks.on_progress(n_done) : Result<void>();
  };
  DraftSource* source = drafting_ ? drafting_->source.get() : nullptr;
  TRY(prefill_for_drafts(*runner_, kPromptSeq, tokens, recording, source, cancel));
  memory.checkpoint(kPromptSeq);  // for the same prompt again
  const std::span<const float> row = runner_->output(runner_->n_outputs() - 1);
  last_row_.assign(row.begin(), row.end());
  return Filled{n_cached, last_row_};
}

void PromptLane::forget() {
  tokens_.clear();
  last_row_.clear();
  tenant_.clear();
  runner_->memory().clear(kPromptSeq);
}

void PromptLane::clear_forks() {
  SequenceMemory& memory = runner_->memory();
  for (std::size_t seq = 1; seq < memory.n_seqs(); ++seq) memory.clear(static_cast<SeqId>(seq));
}

}  // namespace hocket
