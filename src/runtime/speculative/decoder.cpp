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

Result<void> SpeculativeDecoder::verify(std::span<const TokenId> tokens, const Draw& draw, std::size_t& n_used) {
  while (true) {
    const std::size_t row = n_used++;
    TRY_ASSIGN(const Drawn drawn, draw(runner_->output(row)));
    history_.push_back(drawn.id);
    const bool matches = row + 1 < tokens.size() && drawn.id == tokens[row + 1];
    if (matches) ++counts_.n_accepted;
    if (drawn.last || !matches) return {};
  }
}

Result<void> SpeculativeDecoder::tell_source(std::span<const TokenId> tokens, std::size_t n_used) {
  std::vector<TargetRow> rows(n_used);
  const bool hidden = source_->traits().hidden;
  for (std::size_t i = 0; i < n_used; ++i)
    rows[i] = {runner_->output(i), hidden ? runner_->hidden(i) : std::span<const float>()};
  TargetStep step;
  step.first_position = runner_->memory().length(seq_) - tokens.size();
  step.tokens = tokens.first(n_used);
  step.rows = rows;
  step.n_drafted = tokens.size() - 1;
  return source_->accept(step);
}

Result<void> SpeculativeDecoder::step(std::size_t n_most, const Draw& draw, const CancelToken& cancel,
                                      const std::function<Result<void>()>& check) {
  CHECK(n_most > 0 && runner_->memory().length(seq_) + 1 == history_.size());
  std::vector<TokenId> tokens{history_.back()};
  TRY_ASSIGN(const std::vector<TokenId> drafted, draft(n_most, cancel, check));
  tokens.insert(tokens.end(), drafted.begin(), drafted.end());
  std::vector<BatchToken> batch;
  for (const TokenId id : tokens) batch.push_back({id, seq_, true});

  TRY_ASSIGN(Rollback rollback, Rollback::before(*runner_, seq_, batch.size()));
  const auto output = source_->traits().hidden ? StepOutput::kLogitsAndHidden : StepOutput::kLogits;
  TRY(runner_->step(batch, output, cancel));
  ++counts_.n_steps;
  counts_.n_drafted += drafted.size();
  const std::size_t n_accepted_before = counts_.n_accepted;
  std::size_t n_used = 0;
  const Result<void> drawn = verify(tokens, draw, n_used);
  if (!drafted.empty()) length_.observe(drafted.size(), counts_.n_accepted - n_accepted_before);

  // The source sees the rows before a second step may overwrite them.
  const Result<void> told = tell_source(tokens, n_used);
  TRY(rollback.keep(tokens, n_used, cancel));
  TRY(drawn);
  return told;
}

}  // namespace hocket
