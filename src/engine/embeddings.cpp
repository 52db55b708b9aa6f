#include "engine/embeddings.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "engine/prompt_lane.h"

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

EmbeddingJob::EmbeddingJob(std::shared_ptr<JobControl> control, std::vector<std::vector<TokenId>> inputs,
                           Pooling pooling, std::optional<int> dimensions)
    : Job(std::move(control)), inputs_(std::move(inputs)), pooling_(pooling), dimensions_(dimensions) {}

Result<void> EmbeddingJob::run(PromptLane& lane) {
  control().phase = RequestPhase::kPrefill;
  timings_.queue_ms = ms_since(control().queued);
  const auto start = Clock::now();
  for (const std::vector<TokenId>& input : inputs_) {
    TRY_ASSIGN(std::vector<float> vector, embed(lane, input));
    normalise(vector, dimensions_);
    out_.vectors.push_back(std::move(vector));
    out_.n_prompt_tokens += input.size();
  }
  lane.forget();
  timings_.prefill_ms = ms_since(start);
  return {};
}

Result<std::vector<float>> EmbeddingJob::embed(PromptLane& lane, const std::vector<TokenId>& input) {
  lane.forget();
  std::vector<double> sum;
  std::vector<float> vector;
  const std::size_t n_before = out_.n_prompt_tokens;
  PrefillHooks hooks;
  hooks.output = StepOutput::kHidden;
  hooks.every_row = pooling_ != Pooling::kLast;
  hooks.on_rows = [&](std::size_t first, std::size_t n_rows) -> Result<void> {
    LmRunner& runner = lane.runner();
    if (pooling_ == Pooling::kMean) {
      for (std::size_t i = 0; i < n_rows; ++i) {
        const std::span<const float> row = runner.output(i);
        sum.resize(row.size());
        for (std::size_t c = 0; c < row.size(); ++c) sum[c] += row[c];
      }
    } else if (pooling_ == Pooling::kLast || first == 0) {
      const std::span<const float> row = runner.output(pooling_ == Pooling::kLast ? n_rows - 1 : 0);
      vector.assign(row.begin(), row.end());
    }
    return {};
  };
  hooks.on_progress = [&](std::size_t n_done) -> Result<void> {
    control().prompt_done = n_before + n_done;
    return control().check();
  };
  TRY(prefill(lane.runner(), PromptLane::kPromptSeq, input, hooks, control().cancel));
  if (pooling_ == Pooling::kMean) {
    for (const double x : sum) vector.push_back(static_cast<float>(x / static_cast<double>(input.size())));
  }
  return vector;
}

Job::Numbers EmbeddingJob::numbers() {
  timings_.total_ms = ms_since(control().submitted);
  Usage usage;
  usage.prompt_tokens = out_.n_prompt_tokens;
  return {RequestOutcome::kEmbedding, usage, timings_};
}

void EmbeddingJob::complete() {
  settle(std::move(out_));
}

void EmbeddingJob::fail(Error error) {
  settle(std::move(error));
}

void EmbeddingJob::settle(Result<EmbeddingResult> result) {
  if (!settled_.exchange(true)) promise_.set_value(std::move(result));
}

}  // namespace hocket
