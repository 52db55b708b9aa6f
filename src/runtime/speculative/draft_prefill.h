// runtime/speculative/draft_prefill.h: tells a source of drafts about chunks of the prompt.
//
// Threads  one user at a time.
// Errors   those of the source.
// Cost     nothing for sources that need no hidden states, else the source's own steps.
#pragma once

#include "runtime/speculative/draft_source.h"
#include "runtime/step_rows.h"

namespace hocket {

// After a step that evaluated `tokens` from first_position on; with hidden states where the source needs them.
Result<void> tell_of_prompt(DraftSource& source, const StepRows& rows, std::size_t first_position,
                            std::span<const TokenId> tokens);

}  // namespace hocket
