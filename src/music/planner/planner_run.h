// music/planner/planner_run.h: sequences of the planning language model, side by side, with guidance.
//
// Sequence i continues prompt i; with guidance a second sequence of it continues the unconditional prompt, and the
// logits are u + scale · (c − u).
//
// Owns     the runner with its memory of sequences. Borrows the PlannerModel.
// Threads  one user at a time.
// Errors   start(): kInvalid when prompt and answer pass --max-seq; kOutOfMemory. Steps: kCancelled.
// Cost     a step is one pass over the weights for all sequences that still go on.
// Source   ace-step.md §§5.2, 6.3, 6.7.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/cancel.h"
#include "lm/runner.h"
#include "music/planner/planner_model.h"
#include "music/planner/planner_prompts.h"

namespace hocket {

struct PlannerPrompts {
  std::vector<TokenIds> conditional;    // one for each sequence
  std::vector<TokenIds> unconditional;  // as many, or none without guidance
  float guidance = 1;
  std::size_t max_steps = 0;  // tokens of each answer
  TokenId first_token = 0;    // the logits of those below are not needed and may be −∞
};

class PlannerRun {
 public:
  // Evaluates the prompts; equal ones only once.
  static Result<std::unique_ptr<PlannerRun>> start(const PlannerModel& planner, const PlannerPrompts& prompts,
                                                   const CancelToken& cancel);

  // The logits of sequence i after its last token, [n_vocab]. Valid until the next step.
  std::vector<float>& logits(std::size_t i) { return logits_[i]; }
  struct Next {
    std::size_t sequence;
    TokenId token;
  };
  // Feeds one token to each of these sequences; the others stay as they are.
  Result<void> step(std::span<const Next> next, const CancelToken& cancel);

 private:
  PlannerRun() = default;
  Result<void> prefill_all(const std::vector<TokenIds>& prompts, std::size_t first_seq,
                           std::vector<std::vector<float>>& rows, const CancelToken& cancel);
  void combine(std::size_t i, std::span<const float> unconditional);

  std::unique_ptr<LmRunner> runner_;
  std::size_t n_ = 0;
  float guidance_ = 1;
  bool guided_ = false;
  std::size_t first_token_ = 0;
  std::vector<std::vector<float>> logits_;
};

}  // namespace hocket
