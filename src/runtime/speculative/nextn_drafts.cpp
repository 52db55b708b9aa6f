#include "runtime/speculative/nextn_drafts.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace hocket {

NextnDrafts::NextnDrafts(LmRunner& runner, NextnDraftOptions options, SeqId seq)
    : runner_(&runner), options_(std::move(options)), seq_(seq), pending_(options_.n_embd, 0.0f) {
  if (options_.n_chunk == 0) options_.n_chunk = runner.options().n_batch;
  CHECK(options_.n_embd > 0);
}

Result<void> NextnDrafts::begin(std::size_t n_kept) {
  generating_ = false;
  marks_.erase(marks_.upper_bound(n_kept), marks_.end());
  const auto mark = marks_.find(n_kept);
  lost_ = n_kept > 0 && (mark == marks_.end() || !runner_->memory().can_truncate(seq_, n_kept));
  if (lost_ || n_kept == 0) {
    runner_->memory().clear(seq_);
    marks_.clear();
    pending_.assign(options_.n_embd, 0.0f);
    true_ = 0;
    return {};
  }
  TRY(runner_->memory().truncate(seq_, n_kept));
  pending_ = mark->second;
  true_ = n_kept;
  return {};
}

Result<Draft> NextnDrafts::propose(const DraftRequest& request) {
  Draft draft;
  // The block must stand where the model stands: before the last token of the history.
  if (lost_ || length() + 1 != request.history.size()) return draft;
  if (!generating_) marks_[length()] = pending_;  // the end of the prompt
  generating_ = true;
  TokenId token = request.history.back();
  std::vector<float> from = pending_;
  while (draft.tokens.size() < request.n_max && length() < runner_->options().n_ctx) {
    if (request.check) TRY(request.check());
    const BatchToken one{token, seq_, true};
    TRY(runner_->step_from(from, std::span(&one, 1), StepOutput::kLogitsAndHidden, request.cancel));
    if (draft.tokens.empty()) true_ = length();
    const std::span<const float> row = runner_->output(0).first(std::min(options_.n_vocab, runner_->output(0).size()));
    const auto best = std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const float logit : row) sum += std::exp(static_cast<double>(logit) - static_cast<double>(*best));
    const auto p = static_cast<float>(1.0 / sum);
    // Not a number is below everything.
    if (!(p >= request.p_min)) break;
    token = static_cast<TokenId>(best - row.begin());
    draft.tokens.push_back(token);
    draft.p.push_back(p);
    if (std::find(options_.ends.begin(), options_.ends.end(), token) != options_.ends.end()) break;
    const std::span<const float> hidden = runner_->hidden(0);
    from.assign(hidden.begin(), hidden.end());
  }
  return draft;
}

Result<void> NextnDrafts::accept(const TargetStep& step) {
  if (lost_ || step.tokens.empty()) return {};
  // Guesses go; the first token of the step was evaluated with the model's own state if it was evaluated.
  const std::size_t keep = std::min({length(), true_, step.first_position + step.tokens.size()});
  if (keep < step.first_position) {
    lost_ = true;
    return {};
  }
  TRY(runner_->memory().truncate(seq_, keep));
  const std::size_t first = keep - step.first_position;
  std::vector<BatchToken> batch;
  std::vector<float> before;
  for (std::size_t i = first; i < step.tokens.size(); ++i) {
    CHECK(step.rows[i].hidden.size() == options_.n_embd);
    batch.push_back({step.tokens[i], seq_, false});
    const std::span<const float> row = i == 0 ? std::span<const float>(pending_) : step.rows[i - 1].hidden;
    before.insert(before.end(), row.begin(), row.end());
  }
  if (!batch.empty()) TRY(runner_->step_from(before, batch, StepOutput::kLogits, CancelToken()));
  pending_.assign(step.rows.back().hidden.begin(), step.rows.back().hidden.end());
  true_ = length();
  marks_.erase(marks_.upper_bound(step.first_position), marks_.end());
  if (true_ % options_.n_chunk == 0) marks_[true_] = pending_;
  return {};
}

}  // namespace hocket
