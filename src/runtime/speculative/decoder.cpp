#include "runtime/speculative/decoder.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "runtime/speculative/rollback.h"

namespace hocket {
namespace {

DraftCosts costs_of(const DraftTraits& source, std::size_t n_max, const MemoryTraits& memory) {
  DraftCosts costs;
  costs.token = source.token_cost;
  if (!memory.takes_back(n_max + 1)) costs.rejection = 1;  // the tokens that stay are evaluated again
  return costs;
}

}  // namespace

SpeculativeDecoder::SpeculativeDecoder(LmRunner& runner, SeqId seq, DraftSource& source, const DraftSettings& settings,
                                       std::vector<TokenId> history)
    : runner_(&runner),
      seq_(seq),
      source_(&source),
      settings_(settings),
      history_(std::move(history)),
      length_(settings.n_max.value_or(source.traits().n_max), source.traits().acceptance,
              costs_of(source.traits(), settings.n_max.value_or(source.traits().n_max), runner.memory().traits())) {
  CHECK(runner.memory().length(seq) + 1 == history_.size());
}

Result<std::vector<TokenId>> SpeculativeDecoder::draft(std::size_t n_most, const CancelToken& cancel,
                                                       const std::function<Result<void>()>& check) {
  const std::size_t wanted = std::max(length_.choose(), settings_.n_min);
  if (wanted == 0) length_.pass();
  // Room for the draft beside the token that is evaluated anyway.
  const SequenceMemory& memory = runner_->memory();
  std::size_t room = std::min(runner_->options().n_batch, memory.n_free_cells());
  room = std::min(room, runner_->options().n_ctx - std::min(runner_->options().n_ctx, memory.length(seq_)));
  DraftRequest request;
  request.n_max = std::min({wanted, n_most - 1, room > 0 ? room - 1 : 0});
  if (request.n_max == 0) return std::vector<TokenId>();
  request.history = history_;
  request.p_min = settings_.p_min;
  request.cancel = cancel;
  request.check = check;
  TRY_ASSIGN(Draft draft, source_->propose(request));
  CHECK(draft.tokens.size() <= request.n_max);
  return std::move(draft.tokens);
}

Result<std::span<const TokenId>> SpeculativeDecoder::prepare(std::size_t n_most, const CancelToken& cancel,
                                                             const std::function<Result<void>()>& check) {
  CHECK(n_most > 0 && runner_->memory().length(seq_) + 1 == history_.size());
  if (!tokens_.empty()) return std::span<const TokenId>(tokens_);
  TRY_ASSIGN(const std::vector<TokenId> drafted, draft(n_most, cancel, check));
  TRY_ASSIGN(rollback_, Rollback::before(*runner_, seq_, 1 + drafted.size()));
  tokens_ = {history_.back()};
  tokens_.insert(tokens_.end(), drafted.begin(), drafted.end());
  return std::span<const TokenId>(tokens_);
}

Result<void> SpeculativeDecoder::verify(const StepRows& rows, const Draw& draw) {
  while (true) {
    const std::size_t row = n_used_++;
    TRY_ASSIGN(const Drawn drawn, draw(rows.output(row)));
    history_.push_back(drawn.id);
    const bool matches = row + 1 < tokens_.size() && drawn.id == tokens_[row + 1];
    if (matches) ++counts_.n_accepted;
    if (drawn.last || !matches) return {};
  }
}

Result<void> SpeculativeDecoder::tell_source(const StepRows& rows) {
  std::vector<TargetRow> used(n_used_);
  const bool hidden = source_->traits().hidden;
  for (std::size_t i = 0; i < n_used_; ++i)
    used[i] = {rows.output(i), hidden ? rows.hidden(i) : std::span<const float>()};
  TargetStep step;
  step.first_position = runner_->memory().length(seq_) - tokens_.size();
  step.tokens = std::span(tokens_).first(n_used_);
  step.rows = used;
  step.n_drafted = tokens_.size() - 1;
  return source_->accept(step);
}

Result<void> SpeculativeDecoder::take(const StepRows& rows, const Draw& draw) {
  CHECK(!tokens_.empty() && rows.n_outputs() == tokens_.size());
  const std::size_t n_drafted = tokens_.size() - 1, n_accepted_before = counts_.n_accepted;
  ++counts_.n_steps;
  counts_.n_drafted += n_drafted;
  n_used_ = 0;
  const Result<void> drawn = verify(rows, draw);
  if (n_drafted > 0) length_.observe(n_drafted, counts_.n_accepted - n_accepted_before);
  const Result<void> told = tell_source(rows);
  TRY(drawn);
  return told;
}

Result<void> SpeculativeDecoder::settle(const CancelToken& cancel) {
  if (!rollback_) return {};
  const std::vector<TokenId> tokens = std::exchange(tokens_, {});
  const Rollback rollback = *std::exchange(rollback_, std::nullopt);
  return rollback.keep(tokens, n_used_, cancel);
}

Result<void> SpeculativeDecoder::step(std::size_t n_most, const Draw& draw, const CancelToken& cancel,
                                      const std::function<Result<void>()>& check) {
  TRY_ASSIGN(const std::span<const TokenId> tokens, prepare(n_most, cancel, check));
  std::vector<BatchToken> batch;
  for (const TokenId id : tokens) batch.push_back({id, seq_, true});
  TRY(runner_->step(batch, output(), cancel));
  // The source sees the rows before settling may overwrite them; the sequence is cut whatever happened.
  const Result<void> taken = take(StepRows(*runner_, batch.size()), draw);
  TRY(settle(cancel));
  return taken;
}

}  // namespace hocket
