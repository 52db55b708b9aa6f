#include "runtime/speculative/rollback.h"

#include "base/check.h"

namespace hocket {

Result<Rollback> Rollback::before(LmRunner& runner, SeqId seq, std::size_t n_tokens) {
  Rollback rollback(runner, seq);
  if (n_tokens > 1 && !runner.memory().traits().takes_back(n_tokens)) {
    TRY_ASSIGN(rollback.snapshot_, runner.memory().snapshot(seq));
  }
  return rollback;
}

Result<void> Rollback::keep(std::span<const TokenId> tokens, std::size_t n_kept, const CancelToken& cancel) const {
  SequenceMemory& memory = runner_->memory();
  CHECK(n_kept > 0 && n_kept <= tokens.size() && memory.length(seq_) == length_ + tokens.size());
  if (n_kept == tokens.size()) return {};
  if (memory.can_truncate(seq_, length_ + n_kept)) return memory.truncate(seq_, length_ + n_kept);
  if (snapshot_.empty())
    return Error(ErrorCode::kInternal, "the memory cannot return to the tokens that were accepted");

  TRY(memory.restore(seq_, snapshot_));
  std::vector<BatchToken> batch;
  for (const TokenId id : tokens.first(n_kept)) batch.push_back({id, seq_, false});
  return runner_->step(batch, StepOutput::kLogits, cancel);
}

}  // namespace hocket
