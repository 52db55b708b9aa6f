// runtime/speculative/decoder.h: decoding one sequence with drafts: several tokens for one step of the model.
//
//   SpeculativeDecoder decoder(runner, seq, source, settings, history);
//   while (!generation.ended()) TRY(decoder.step(n_left, draw, cancel, check));
//
// Or, where the step is shared with other sequences: prepare(), a step with those tokens in it, take(), and settle()
// when nobody reads rows of that step any more.
//
// Each step evaluates the token drawn last and a draft of what may follow it, then draws row by row with the sequence's
// own sampler, constraint and limits, as long as the drawn token is the draft's. So every token comes from the model's
// own distribution and takes the same random numbers as without drafts; only the shapes of the steps, and with them the
// rounding of logits, differ. After each step the sequence holds exactly what it would hold without drafts: all tokens
// but the one drawn last. (Speculative decoding by sample and match: docs/speculative.md.)
//
// Owns     the history and what was learned about the source. Borrows runner and source.
// Threads  one user at a time.
// Errors   step(): those of the source, of the runner's step, of `draw` and of Rollback. After an error of `draw` the
//          sequence holds all tokens that were drawn. There is no step after an error.
// Cost     a step of 1 + drafted rows, and the source's; docs/speculative.md says how the length is chosen.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "lm/runner.h"
#include "runtime/speculative/draft_length.h"
#include "runtime/speculative/draft_source.h"
#include "runtime/speculative/rollback.h"
#include "runtime/step_rows.h"

namespace hocket {

struct DraftSettings {
  std::optional<std::size_t> n_max;  // most tokens of a draft; absent: what suits the source
  float p_min = 0;                   // of DraftRequest
  std::size_t n_min = 0;             // drafts are asked for at least so long, whether they seem to pay or not
};

struct DraftCounts {
  std::size_t n_steps = 0;     // of the model
  std::size_t n_drafted = 0;   // tokens proposed
  std::size_t n_accepted = 0;  // of them drawn
};

class SpeculativeDecoder {
 public:
  struct Drawn {
    TokenId id;
    bool last;  // the sequence ends with it
  };
  // Draws the next token from a row of logits.
  using Draw = std::function<Result<Drawn>(std::span<const float> logits)>;

  // `history`: the tokens that the sequence holds and the one drawn after them. The source has begun this sequence.
  SpeculativeDecoder(LmRunner& runner, SeqId seq, DraftSource& source, const DraftSettings& settings,
                     std::vector<TokenId> history);

  // Draws 1 to n_most tokens; none of them after one that was the last. `check` may be empty (see DraftRequest).
  Result<void> step(std::size_t n_most, const Draw& draw, const CancelToken& cancel,
                    const std::function<Result<void>()>& check);

  // The parts of step(). The tokens of the next step, for each of which a row is wanted; the same until take().
  Result<std::span<const TokenId>> prepare(std::size_t n_most, const CancelToken& cancel,
                                           const std::function<Result<void>()>& check);
  std::span<const TokenId> prepared() const { return tokens_; }
  Result<void> take(const StepRows& rows, const Draw& draw);
  // Takes back what was not drawn; may need a step of its own.
  Result<void> settle(const CancelToken& cancel);
  // What prepare()'s step must give.
  StepOutput output() const { return source_->traits().hidden ? StepOutput::kLogitsAndHidden : StepOutput::kLogits; }

  const DraftCounts& counts() const { return counts_; }
  const std::vector<TokenId>& history() const { return history_; }

 private:
  Result<std::vector<TokenId>> draft(std::size_t n_most, const CancelToken& cancel,
                                     const std::function<Result<void>()>& check);
  // Draws from the rows while they hold; n_used_ counts those that were drawn from.
  Result<void> verify(const StepRows& rows, const Draw& draw);
  Result<void> tell_source(const StepRows& rows);

  LmRunner* runner_;
  SeqId seq_;
  DraftSource* source_;
  DraftSettings settings_;
  std::vector<TokenId> history_;
  DraftLength length_;
  DraftCounts counts_;
  // Between prepare() and settle().
  std::vector<TokenId> tokens_;
  std::size_t n_used_ = 0;
  std::optional<Rollback> rollback_;
};

}  // namespace hocket
