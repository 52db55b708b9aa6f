// runtime/lanes/reuse_rules.h: from where a prompt may go on: one set of rules for what lanes and sessions keep.
//
// Lineage. The first n_strict tokens of a state went through the chunks of a cold run; what follows came through the
// steps of an answer, whose rounding is another. A prompt continues from the longest beginning that gives exactly the
// rows of a cold run: whole chunks, or the whole prompt with the row of its last token. Only who allows it continues
// from other places: from any token that the state can be cut at, from generated ones too. Then its own state is strict
// only as far as it was before.
//
// Where a row does not depend on what else is in its step (LmRunner::rows_independent), every state is that of a cold
// run: then all may continue from any token.
//
// Threads  pure functions.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace hocket {

enum class CacheStatus {
  kDisabled,         // nothing was looked for
  kMiss,             // nothing was found
  kPrefix,           // whole chunks of a prompt
  kExactPrefix,      // a prompt beyond its last whole chunk
  kGeneratedPrefix,  // an answer, too
  kExactPrompt,      // all of it
};
inline constexpr std::size_t kCacheStatuses = 6;

struct StateLineage {
  std::size_t n_strict = 0;
  std::size_t n_prompt = 0;  // the rest was generated
};

struct ReuseRules {
  std::size_t n_chunk = 128;
  std::size_t n_least = 16;  // shorter beginnings are not worth it, but for whole prompts
  bool exact = false;        // rows do not depend on their steps
};

struct KeptState {
  std::size_t n_tokens = 0;
  StateLineage lineage;
  bool has_row = false;  // the row after the prompt's last token is known
};

// How many tokens of `state`, n_same of which are those of the prompt, the prompt can start from. At least one token is
// left to evaluate, unless the row after the last one is known.
std::size_t usable_tokens(const KeptState& state, std::size_t n_same, std::size_t n_prompt, bool any_lineage,
                          const ReuseRules& rules, const std::function<bool(std::size_t)>& can_cut);

struct FoundState {
  CacheStatus status = CacheStatus::kMiss;
  std::size_t n_tokens = 0;           // that the sequence holds now
  std::size_t n_strict = 0;           // of them; the rest came through the steps of an answer or of another chunking
  std::size_t n_generated = 0;        // of them: tokens of answers
  std::span<const float> last_row{};  // when these are all: the row after the last one
};

// What a prompt has that starts from n usable tokens of `state`; without the row.
FoundState found_state(const KeptState& state, std::size_t n, std::size_t n_prompt, const ReuseRules& rules);

}  // namespace hocket
