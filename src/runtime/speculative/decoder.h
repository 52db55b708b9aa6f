// runtime/speculative/decoder.h: decoding one sequence with drafts: several tokens for one step of the model.
//
//   SpeculativeDecoder decoder(runner, seq, source, settings, history);
//   while (!generation.ended()) TRY(decoder.step(n_left, draw, cancel, check));
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

  const DraftCounts& counts() const { return counts_; }
  const std::vector<TokenId>& history() const { return history_; }

 private:
  Result<std::vector<TokenId>> draft(std::size_t n_most, const CancelToken& cancel,
                                     const std::function<Result<void>()>& check);
  // Draws from the rows of `tokens` while they hold; n_used counts the rows that were drawn from.
  Result<void> verify(std::span<const TokenId> tokens, const Draw& draw, std::size_t& n_used);
  Result<void> tell_source(std::span<const TokenId> tokens, std::size_t n_used);

  LmRunner* runner_;
  SeqId seq_;
  DraftSource* source_;
  DraftSettings settings_;
  std::vector<TokenId> history_;
  DraftLength length_;
  DraftCounts counts_;
};

}  // namespace hocket
