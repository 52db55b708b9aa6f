// runtime/speculative/draft_prefill.h: evaluates a prompt so that what drafts for it follows.
//
// Threads  one user at a time.
// Errors   those of prefill() and of the source.
// Cost     prefill(), and for sources that need hidden states the final norm of every token and the source's own steps.
#pragma once

#include "runtime/generation.h"
#include "runtime/speculative/draft_source.h"

namespace hocket {

// As prefill(). `source` may be nullptr; otherwise it has begun with the tokens that the sequence holds.
Result<void> prefill_for_drafts(LmRunner& runner, SeqId seq, std::span<const TokenId> tokens, const PrefillHooks& hooks,
                                DraftSource* source, const CancelToken& cancel);

}  // namespace hocket
