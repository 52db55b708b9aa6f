// runtime/lanes/prompt_run.h: one prompt on its way into a sequence, chunk by chunk.
//
// Chunks end at multiples of n_chunk whatever was there before, so that a prompt that continues at such a border runs
// through the same chunks as from an empty sequence. Where that does not matter (reuse_rules.h), and the memory cannot
// be cut anywhere, they end at ends of messages too, for the next turn of the conversation to continue from.
//
// Owns     the row after the last token. Borrows memory, tokens and source.
// Threads  one user at a time.
// Errors   start(): those of the memory and the source. take(): those of the source.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/lanes/lane_memory.h"
#include "runtime/lanes/lane_work.h"
#include "runtime/sessions/session_state.h"
#include "runtime/speculative/draft_source.h"

namespace hocket {

struct PromptRunOptions {
  StepOutput output = StepOutput::kLogits;
  bool every_row = false;    // rows for all tokens, not only for the last
  bool reuse = true;         // start from what is remembered, and remember this prompt
  bool any_lineage = false;  // also from places that a cold run would not pass through (reuse_rules.h)
  // Ends of messages in the prompt, ascending: a later prompt may be the same up to one of them.
  std::span<const std::size_t> message_ends{};
  // A saved state, n_saved tokens of which the prompt can start from, where that is more than what is remembered.
  std::shared_ptr<const SessionState> saved = nullptr;
  std::size_t n_saved = 0;
};

class PromptRun {
 public:
  // `seq` is empty.
  PromptRun(LaneMemory& memory, SeqId seq, std::span<const TokenId> tokens, std::string tenant,
            const PromptRunOptions& options);

  // Takes what is remembered of it. The source follows the prompt from then on; nullptr: none.
  Result<void> start();
  void set_source(DraftSource* source) { source_ = source; }

  CacheStatus status() const { return found_.status; }
  std::size_t n_cached() const { return found_.n_tokens; }
  std::size_t n_generated() const { return found_.n_generated; }  // of those: tokens of answers
  // The first tokens that went through the chunks of a cold run.
  std::size_t n_strict() const { return n_strict_; }
  std::size_t n_done() const { return n_done_; }
  const std::string& tenant() const { return tenant_; }
  // Whether it started from the saved state, and how long that took.
  bool from_saved() const { return from_saved_; }
  double restore_ms() const { return restore_ms_; }
  bool complete() const { return n_done_ == tokens_.size(); }
  StepWish wish() const;
  void add_to(std::vector<BatchToken>& batch) const;
  // The chunk's rows; those that were wanted belong to the last n_outputs() of its tokens.
  Result<void> take(const StepRows& rows);
  // After the last token, once complete.
  std::span<const float> last_row() const { return last_row_; }

 private:
  std::size_t chunk_end() const;
  bool marks_messages() const;
  bool saved_is_better() const;
  Result<void> take_saved();
  void remember();

  LaneMemory* memory_;
  SeqId seq_;
  std::span<const TokenId> tokens_;
  std::string tenant_;
  PromptRunOptions options_;
  DraftSource* source_ = nullptr;
  PrefixCache::Found found_;
  bool from_saved_ = false;
  double restore_ms_ = 0;
  std::size_t n_done_ = 0, n_strict_ = 0;
  std::vector<float> last_row_;
};

}  // namespace hocket
