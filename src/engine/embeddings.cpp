#include "engine/embeddings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace hocket {

Result<Pooling> parse_pooling(std::string_view name) {
  if (name.empty() || name == "none" || name == "mean") return Pooling::kMean;
  if (name == "last") return Pooling::kLast;
  if (name == "cls") return Pooling::kCls;
  return Error(ErrorCode::kInvalid, fmt::format("pooling \"{}\" is not known; there are mean, last and cls", name),
               "pooling");
}

void normalise(std::vector<float>& vector, std::optional<int> dimensions) {
  if (dimensions && *dimensions >= 0 && static_cast<std::size_t>(*dimensions) < vector.size()) {
    vector.resize(static_cast<std::size_t>(*dimensions));
  }
  double sum = 0;
  for (const float x : vector) sum += static_cast<double>(x) * x;
  if (sum <= 0) return;
  const double scale = 1.0 / std::sqrt(sum);
  for (float& x : vector) x = static_cast<float>(x * scale);
}

EmbeddingJob::EmbeddingJob(std::shared_ptr<JobControl> control, LaneMemory& memory,
                           std::vector<std::vector<TokenId>> inputs, Pooling pooling, std::optional<int> dimensions)
    : Job(std::move(control)),
      memory_(&memory),
      inputs_(std::move(inputs)),
      pooling_(pooling),
      dimensions_(dimensions) {}

LaneDemand EmbeddingJob::demand() const {
  LaneDemand demand;
  for (const std::vector<TokenId>& input : inputs_) demand.n_cells = std::max(demand.n_cells, input.size());
  return demand;
}

Result<void> EmbeddingJob::start() {
  control().phase = RequestPhase::kPrefill;
  timings_.queue_ms = ms_since(control().queued);
  start_ = Clock::now();
  TRY_ASSIGN(seq_, memory_->take_sequence());
  begin_input();
  return {};
}

void EmbeddingJob::stop() {
  run_.reset();
  seq_ = Sequence();
}

void EmbeddingJob::begin_input() {
  memory_->runner().memory().clear(seq_.id());
  PromptRunOptions options;
  options.output = StepOutput::kHidden;
  options.every_row = pooling_ != Pooling::kLast;
  options.reuse = false;
  run_.emplace(*memory_, seq_.id(), inputs_[out_.vectors.size()], tenant(), options);
  sum_.clear();
  vector_.clear();
}

void EmbeddingJob::pool(const StepRows& rows, std::size_t first) {
  if (pooling_ == Pooling::kMean) {
    for (std::size_t i = 0; i < rows.n_outputs(); ++i) {
      const std::span<const float> row = rows.output(i);
      sum_.resize(row.size());
      for (std::size_t c = 0; c < row.size(); ++c) sum_[c] += row[c];
    }
  } else if (rows.n_outputs() > 0 && (pooling_ == Pooling::kLast || first == 0)) {
    const std::span<const float> row = rows.output(pooling_ == Pooling::kLast ? rows.n_outputs() - 1 : 0);
    vector_.assign(row.begin(), row.end());
  }
}

Result<void> EmbeddingJob::take(const StepRows& rows, const StepFacts&) {
  const std::vector<TokenId>& input = inputs_[out_.vectors.size()];
  pool(rows, run_->n_done());
  TRY(run_->take(rows));
  control().prompt_done = out_.n_prompt_tokens + run_->n_done();
  if (!run_->complete()) return {};
  if (pooling_ == Pooling::kMean)
    for (const double x : sum_) vector_.push_back(static_cast<float>(x / static_cast<double>(input.size())));
  normalise(vector_, dimensions_);
  out_.n_prompt_tokens += input.size();
  out_.vectors.push_back(std::move(vector_));
  timings_.prefill_ms = ms_since(start_);
  if (!done()) begin_input();
  return {};
}

Job::Numbers EmbeddingJob::numbers() {
  timings_.total_ms = ms_since(control().submitted);
  Usage usage;
  usage.prompt_tokens = out_.n_prompt_tokens;
  return {RequestOutcome::kEmbedding, usage, timings_};
}

void EmbeddingJob::complete() {
  answer(std::move(out_));
}

void EmbeddingJob::fail(Error error) {
  answer(std::move(error));
}

void EmbeddingJob::answer(Result<EmbeddingResult> result) {
  if (!answered_.exchange(true)) promise_.set_value(std::move(result));
}

}  // namespace hocket
