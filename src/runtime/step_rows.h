// runtime/step_rows.h: one sequence's part of a step that several share.
//
// Threads  a view; valid until the runner's next step.
#pragma once

#include <cstddef>
#include <span>

#include "lm/runner.h"

namespace hocket {

class StepRows {
 public:
  // Places in the batch of the step, and among its outputs.
  StepRows(const LmRunner& runner, std::size_t first_token, std::size_t n_tokens, std::size_t first_output,
           std::size_t n_outputs)
      : runner_(&runner),
        first_token_(first_token),
        n_tokens_(n_tokens),
        first_output_(first_output),
        n_outputs_(n_outputs) {}
  // All of a step of n_tokens.
  StepRows(const LmRunner& runner, std::size_t n_tokens) : StepRows(runner, 0, n_tokens, 0, runner.n_outputs()) {}

  std::size_t n_tokens() const { return n_tokens_; }
  std::size_t n_outputs() const { return n_outputs_; }
  std::span<const float> output(std::size_t i) const { return runner_->output(first_output_ + i); }
  // After kLogitsAndHidden.
  std::span<const float> hidden(std::size_t i) const { return runner_->hidden(first_token_ + i); }

 private:
  const LmRunner* runner_;
  std::size_t first_token_, n_tokens_, first_output_, n_outputs_;
};

}  // namespace hocket
