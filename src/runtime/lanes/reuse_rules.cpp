#include "runtime/lanes/reuse_rules.h"

#include <algorithm>

namespace hocket {

std::size_t usable_tokens(const KeptState& state, std::size_t n_same, std::size_t n_prompt, bool any_lineage,
                          const ReuseRules& rules, const std::function<bool(std::size_t)>& can_cut) {
  if (n_same == n_prompt && n_prompt == state.lineage.n_prompt && state.has_row &&
      (any_lineage || rules.exact || state.lineage.n_strict >= n_prompt) && can_cut(n_prompt))
    return n_prompt;
  if (rules.exact) {
    std::size_t n = std::min(n_same, n_prompt - 1);
    while (n >= rules.n_least && !can_cut(n)) --n;
    return n >= rules.n_least ? n : 0;
  }
  if (any_lineage) {
    const std::size_t n = std::min(n_same, n_prompt - 1);
    if (n >= rules.n_least && can_cut(n)) return n;
  }
  std::size_t n = std::min({n_same, n_prompt - 1, state.lineage.n_strict}) / rules.n_chunk * rules.n_chunk;
  while (n > 0 && !can_cut(n)) n -= rules.n_chunk;
  return n >= rules.n_least ? n : 0;
}

FoundState found_state(const KeptState& state, std::size_t n, std::size_t n_prompt, const ReuseRules& rules) {
  FoundState found;
  found.n_tokens = n;
  if (n == n_prompt) {
    found.status = CacheStatus::kExactPrompt;
  } else if (n > state.lineage.n_prompt) {
    found.status = CacheStatus::kGeneratedPrefix;
  } else {
    const bool whole_chunks = n <= state.lineage.n_strict && n % rules.n_chunk == 0;
    found.status = whole_chunks ? CacheStatus::kPrefix : CacheStatus::kExactPrefix;
  }
  found.n_generated = n - std::min(n, state.lineage.n_prompt);
  if (rules.exact) {
    found.n_strict = n;
    return found;
  }
  const std::size_t n_strict = std::min(n, state.lineage.n_strict);
  found.n_strict = n == n_prompt ? n_strict : n_strict / rules.n_chunk * rules.n_chunk;
  return found;
}

}  // namespace hocket
