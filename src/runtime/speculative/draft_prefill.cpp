#include "runtime/speculative/draft_prefill.h"

namespace hocket {

Result<void> prefill_for_drafts(LmRunner& runner, SeqId seq, std::span<const TokenId> tokens, const PrefillHooks& hooks,
                                DraftSource* source, const CancelToken& cancel) {
  if (!source || !source->traits().hidden || hooks.output != StepOutput::kLogits)
    return prefill(runner, seq, tokens, hooks, cancel);
  PrefillHooks watched = hooks;
  watched.output = StepOutput::kLogitsAndHidden;
  std::size_t first = runner.memory().length(seq);
  watched.on_progress = [&](std::size_t n_done) -> Result<void> {
    std::vector<TargetRow> rows(n_done - first);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].hidden = runner.hidden(i);
    TRY(source->accept({first, tokens.subspan(first, rows.size()), rows, 0}));
    first = n_done;
    return hooks.on_progress ? hooks.on_progress(n_done) : Result<void>();
  };
  return prefill(runner, seq, tokens, watched, cancel);
}

}  // namespace hocket
