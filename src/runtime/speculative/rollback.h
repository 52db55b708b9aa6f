// runtime/speculative/rollback.h: takes a step back to the tokens of it that stay.
//
//   TRY_ASSIGN(Rollback rollback, Rollback::before(runner, seq, n_rows));
//   TRY(runner.step(batch, …));                      // tokens of `seq` only
//   TRY(rollback.keep(tokens, n_kept, cancel));
//
// Where the memory can be cut at the wanted length it is cut. Else the state from before the step comes back and the
// tokens that stay are evaluated again, in one step.
//
// Owns     a snapshot of the sequence where the memory may need one. Borrows the runner.
// Threads  one user at a time.
// Errors   those of the memory and, for the second step, of the runner. The sequence then holds all of the step, or
//          nothing of it.
// Cost     nothing for memories that take back steps of this length; else a snapshot each time, and a step when tokens
// go.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "lm/runner.h"
#include "tokenizer/tokenizer.h"

namespace hocket {

class Rollback {
 public:
  // n_tokens: of the step to come; one token never goes back.
  static Result<Rollback> before(LmRunner& runner, SeqId seq, std::size_t n_tokens);
  // `tokens` are those of the step, of which the first n_kept stay.
  Result<void> keep(std::span<const TokenId> tokens, std::size_t n_kept, const CancelToken& cancel) const;

 private:
  Rollback(LmRunner& runner, SeqId seq) : runner_(&runner), seq_(seq), length_(runner.memory().length(seq)) {}

  LmRunner* runner_;
  SeqId seq_;
  std::size_t length_;               // before the step
  std::vector<std::byte> snapshot_;  // empty when none is needed
};

}  // namespace hocket
