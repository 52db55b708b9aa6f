#include "music/planner/planner_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/generation.h"

namespace hocket {

Result<std::unique_ptr<PlannerRun>> PlannerRun::start(const PlannerModel& planner, const PlannerPrompts& prompts,
                                                      const CancelToken& cancel) {
  std::unique_ptr<PlannerRun> run(new PlannerRun);
  run->n_ = prompts.conditional.size();
  run->guided_ = !prompts.unconditional.empty();
  run->guidance_ = prompts.guidance;
  CHECK(run->n_ > 0 && (!run->guided_ || prompts.unconditional.size() == run->n_));

  std::size_t n_tokens = 0;
  for (const auto* group : {&prompts.conditional, &prompts.unconditional})
    for (const TokenIds& prompt : *group) {
      const std::size_t needed = prompt.size() + prompts.max_steps;
      if (needed > planner.options().max_seq)
        return Error(ErrorCode::kInvalid,
                     fmt::format("a prompt of {} tokens and an answer of up to {} pass the limit of {} (--max-seq)",
                                 prompt.size(), prompts.max_steps, planner.options().max_seq),
                     "lyrics");
      n_tokens += needed;
    }
  const std::size_t n_seqs = run->n_ * (run->guided_ ? 2 : 1);
  TRY_ASSIGN(run->runner_, LmRunner::create(planner.model(), planner.runner_options(n_seqs, n_tokens)));
  run->first_token_ = static_cast<std::size_t>(prompts.first_token);
  run->runner_->skip_logits_below(prompts.first_token);

  TRY(run->prefill_all(prompts.conditional, 0, run->logits_, cancel));
  if (run->guided_) {
    std::vector<std::vector<float>> rows;
    TRY(run->prefill_all(prompts.unconditional, run->n_, rows, cancel));
    for (std::size_t i = 0; i < run->n_; ++i) run->combine(i, rows[i]);
  }
  return run;
}

Result<void> PlannerRun::prefill_all(const std::vector<TokenIds>& prompts, std::size_t first_seq,
                                     std::vector<std::vector<float>>& rows, const CancelToken& cancel) {
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto seq = static_cast<SeqId>(first_seq + i);
    const auto same = std::find(prompts.begin(), prompts.begin() + static_cast<std::ptrdiff_t>(i), prompts[i]);
    if (const auto twin = static_cast<std::size_t>(same - prompts.begin()); twin < i) {
      TRY(runner_->memory().fork(static_cast<SeqId>(first_seq + twin), seq));
      rows.push_back(rows[twin]);
      continue;
    }
    TRY(prefill(*runner_, seq, prompts[i], {}, cancel));
    const auto row = runner_->output(0);
    rows.emplace_back(row.begin(), row.end());
  }
  return {};
}

void PlannerRun::combine(std::size_t i, std::span<const float> unconditional) {
  std::vector<float>& row = logits_[i];
  for (std::size_t k = first_token_; k < row.size(); ++k)
    row[k] = unconditional[k] + guidance_ * (row[k] - unconditional[k]);
}

Result<void> PlannerRun::step(std::span<const Next> next, const CancelToken& cancel) {
  std::vector<BatchToken> batch;
  for (const Next& n : next) batch.push_back({n.token, static_cast<SeqId>(n.sequence), true});
  if (guided_)
    for (const Next& n : next) batch.push_back({n.token, static_cast<SeqId>(n_ + n.sequence), true});
  TRY(runner_->step(batch, StepOutput::kLogits, cancel));
  for (std::size_t i = 0; i < next.size(); ++i) {
    const auto row = runner_->output(i);
    logits_[next[i].sequence].assign(row.begin(), row.end());
    if (guided_) combine(next[i].sequence, runner_->output(next.size() + i));
  }
  return {};
}

}  // namespace hocket
