#include "runtime/speculative/draft_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "lm/language_model.h"
#include "runtime/generation.h"

namespace hocket {

DraftModel::DraftModel(LmRunner& runner, DraftModelOptions options, SeqId seq)
    : runner_(&runner), options_(std::move(options)), seq_(seq) {
  CHECK(options_.n_vocab > 0 && options_.n_vocab <= runner.model().n_vocab());
}

Result<void> DraftModel::begin(std::size_t n_kept) {
  const std::size_t n_batch = runner_->options().n_batch;
  const std::size_t n_whole = n_kept / n_batch * n_batch;
  if (tokens_.size() > n_whole) tokens_.resize(n_whole);
  return {};
}

Result<void> DraftModel::follow(const DraftRequest& request) {
  const std::span<const TokenId> history = request.history;
  SequenceMemory& memory = runner_->memory();
  const std::size_t n_both = std::min(history.size() - 1, tokens_.size());  // the last token's logits are wanted
  const auto end = tokens_.begin() + static_cast<std::ptrdiff_t>(n_both);
  auto n_same = static_cast<std::size_t>(std::mismatch(tokens_.begin(), end, history.begin()).first - tokens_.begin());
  if (memory.can_truncate(seq_, n_same)) {
    TRY(memory.truncate(seq_, n_same));
  } else {
    memory.clear(seq_);
    n_same = 0;
  }
  tokens_.resize(n_same);
  PrefillHooks hooks;
  hooks.on_progress = [&](std::size_t n_done) -> Result<void> {
    const auto added = history.first(n_done).subspan(tokens_.size());
    tokens_.insert(tokens_.end(), added.begin(), added.end());
    return request.check ? request.check() : Result<void>();
  };
  return prefill(*runner_, seq_, history, hooks, request.cancel);
}

std::pair<TokenId, float> DraftModel::best() const {
  const std::span<const float> row = runner_->output(runner_->n_outputs() - 1).first(options_.n_vocab);
  const auto top = std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float logit : row) sum += std::exp(static_cast<double>(logit - *top));
  return {static_cast<TokenId>(top - row.begin()), static_cast<float>(1 / sum)};
}

Result<Draft> DraftModel::propose(const DraftRequest& request) {
  Draft draft;
  const std::size_t n_ctx = std::min(runner_->options().n_ctx, runner_->memory().n_cells());
  if (request.history.empty() || request.history.size() > n_ctx) return draft;
  // The last proposed token is never evaluated.
  const std::size_t n_max = std::min(request.n_max, n_ctx - request.history.size() + 1);
  if (n_max == 0) return draft;
  TRY(follow(request));
  while (true) {
    const auto [id, p] = best();
    if (!(p >= request.p_min)) break;
    draft.tokens.push_back(id);
    draft.p.push_back(p);
    const bool ends = std::find(options_.ends.begin(), options_.ends.end(), id) != options_.ends.end();
    if (ends || draft.tokens.size() == n_max) break;
    const BatchToken next{id, seq_, true};
    TRY(runner_->step(std::span(&next, 1), StepOutput::kLogits, request.cancel));
    tokens_.push_back(id);
  }
  return draft;
}

Result<void> check_same_vocabulary(const Tokenizer& target, const Tokenizer& draft) {
  const auto refuse = [](std::string why) {
    return Error(ErrorCode::kInvalid, "the draft model cannot be used: " + std::move(why), "draft-model");
  };
  if (target.kind() != draft.kind()) {
    return refuse(fmt::format("its tokenizer is \"{}\", the model's \"{}\"", draft.kind(), target.kind()));
  }
  const std::size_t n_both = std::min(target.size(), draft.size());
  const Tokenizer& longer = target.size() > draft.size() ? target : draft;
  for (std::size_t i = n_both; i < longer.size(); ++i) {
    if (longer.type(static_cast<TokenId>(i)) == TokenType::kUnused) continue;
    return refuse(fmt::format("its vocabulary has {} tokens, the model's {}", draft.size(), target.size()));
  }
  for (std::size_t i = 0; i < n_both; ++i) {
    const auto id = static_cast<TokenId>(i);
    if (target.text(id) == draft.text(id)) continue;
    return refuse(fmt::format("its token {} is \"{}\", the model's \"{}\"", id, draft.text(id), target.text(id)));
  }
  return {};
}

}  // namespace hocket
