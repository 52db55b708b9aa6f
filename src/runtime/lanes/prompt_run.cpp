#include "runtime/lanes/prompt_run.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "lm/language_model.h"
#include "runtime/speculative/draft_prefill.h"

namespace hocket {

PromptRun::PromptRun(LaneMemory& memory, SeqId seq, std::span<const TokenId> tokens, std::string tenant,
                     const PromptRunOptions& options)
    : memory_(&memory), seq_(seq), tokens_(tokens), tenant_(std::move(tenant)), options_(options) {
  CHECK(!tokens.empty());
}

Result<void> PromptRun::start() {
  if (!options_.reuse) {
    found_ = memory_->prefixes().pass_over();
    return {};
  }
  if (saved_is_better()) {
    const auto start = Clock::now();
    const Result<void> taken = take_saved();
    from_saved_ = taken.ok();
    restore_ms_ = ms_since(start);
    if (!taken) log_warn("a saved session is not used: {}", taken.error().message);
  }
  if (!from_saved_) {
    TRY_ASSIGN(found_, memory_->prefixes().restore(seq_, tokens_, tenant_, options_.any_lineage));
  }
  n_done_ = found_.n_tokens;
  n_strict_ = found_.n_strict;
  last_row_.assign(found_.last_row.begin(), found_.last_row.end());
  if (from_saved_ && complete()) remember();
  return {};
}

bool PromptRun::saved_is_better() const {
  if (!options_.saved || options_.n_saved == 0) return false;
  const std::size_t n_here = memory_->prefixes().longest(tokens_, tenant_, options_.any_lineage);
  // A whole prompt needs no step at all.
  if (n_here == 0 || options_.n_saved == tokens_.size()) return options_.n_saved > n_here;
  return options_.n_saved >= n_here + memory_->prefixes().rules().n_least;
}

Result<void> PromptRun::take_saved() {
  const SessionState& state = *options_.saved;
  const std::size_t n = options_.n_saved;
  const bool whole = n == tokens_.size();
  if (whole && state.row.size() != memory_->runner().model().n_vocab())
    return Error(ErrorCode::kInvalid, "the saved session's row is of another vocabulary", "session");
  memory_->make_room(state.key.tokens.size());
  SequenceMemory& memory = memory_->runner().memory();
  Result<void> taken = memory.restore(seq_, state.memory);
  if (taken && memory.length(seq_) != state.key.tokens.size())
    taken = Error(ErrorCode::kInvalid, "the saved session's memory is of other tokens", "session");
  if (taken) taken = memory.truncate(seq_, n);
  if (!taken) {
    memory.clear(seq_);
    return taken;
  }
  found_ = found_state(state.key.kept(), n, tokens_.size(), memory_->prefixes().rules());
  if (whole) found_.last_row = state.row;
  memory_->prefixes().count_found(found_);
  return {};
}

std::size_t PromptRun::chunk_end() const {
  const std::size_t n_chunk = memory_->n_chunk();
  const std::size_t end = std::min((n_done_ / n_chunk + 1) * n_chunk, tokens_.size());
  if (!marks_messages()) return end;
  const auto next = std::upper_bound(options_.message_ends.begin(), options_.message_ends.end(), n_done_);
  return next == options_.message_ends.end() ? end : std::min(end, *next);
}

bool PromptRun::marks_messages() const {
  if (!memory_->prefixes().rules().exact || options_.message_ends.empty()) return false;
  const MemoryTraits traits = memory_->runner().memory().traits();
  return !traits.cuts_anywhere || traits.n_window > 0;
}

StepWish PromptRun::wish() const {
  StepWish wish{StepWish::Kind::kPrefill, chunk_end() - n_done_, options_.output};
  if (source_ && source_->traits().hidden) wish.output = StepOutput::kLogitsAndHidden;
  return wish;
}

void PromptRun::add_to(std::vector<BatchToken>& batch) const {
  for (std::size_t i = n_done_; i < chunk_end(); ++i)
    batch.push_back({tokens_[i], seq_, options_.every_row || i + 1 == tokens_.size()});
}

Result<void> PromptRun::take(const StepRows& rows) {
  const std::size_t first = std::exchange(n_done_, chunk_end());
  if (source_) TRY(tell_of_prompt(*source_, rows, first, tokens_.subspan(first, n_done_ - first)));
  if (n_strict_ == first) n_strict_ = n_done_;
  if (complete()) {
    const std::span<const float> row = rows.output(rows.n_outputs() - 1);
    last_row_.assign(row.begin(), row.end());
  }
  if (options_.reuse) remember();
  return {};
}

void PromptRun::remember() {
  PrefixCache& prefixes = memory_->prefixes();
  if (complete()) {
    prefixes.record(seq_, tokens_, tenant_, {n_strict_, n_done_}, last_row_);
    return;
  }
  const std::size_t n_chunk = memory_->n_chunk();
  if (marks_messages()) {
    // The next turn repeats the messages and differs after them; an edited message differs one end earlier.
    const std::span<const std::size_t> ends = options_.message_ends;
    if (n_done_ == ends.back())
      prefixes.record(seq_, tokens_.first(n_done_), tenant_, {n_done_, n_done_}, {});
    else if (std::binary_search(ends.begin(), ends.end(), n_done_))
      memory_->runner().memory().checkpoint(seq_);
  }
  if (n_strict_ != n_done_ || n_done_ % n_chunk != 0) return;
  // The last border for the next turn of a conversation, whose prompt differs from this one near its end: memories that
  // forget (windows) or cannot be cut (recurrence) return to it. Others that begin alike part from it earlier; marks at
  // powers of two leave them at least half of what they share.
  constexpr std::size_t kTail = 16;
  const std::size_t last = tokens_.size() > kTail ? (tokens_.size() - kTail) / n_chunk * n_chunk : 0;
  if (n_done_ == last && !marks_messages())
    prefixes.record(seq_, tokens_.first(n_done_), tenant_, {n_done_, n_done_}, {});
  if (std::has_single_bit(n_done_ / n_chunk)) memory_->runner().memory().checkpoint(seq_);
}

}  // namespace hocket
