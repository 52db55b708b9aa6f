// lm/step_runner.h: the LmRunner of a LoadedModel over a KvCache.
//
// Owns     cache, executor, the graph of the last shape.
// Threads  one user at a time.
#pragma once

#include <memory>
#include <vector>

#include "compute/executor.h"
#include "lm/loaded_model.h"
#include "lm/runner.h"
#include "lm/step_graph.h"

namespace hocket {

KvCacheOptions kv_cache_options(const RunnerOptions& options);
bool uses_flash_attention(const RunnerOptions& options);
// The step that needs the most memory in ordinary use: a full batch, and a row of logits for each sequence.
StepShape largest_step(const KvCache& cache, const RunnerOptions& options);

class StepRunner final : public LmRunner {
 public:
  static Result<std::unique_ptr<StepRunner>> create(const LoadedModel& model, const RunnerOptions& options);

  Result<void> step(std::span<const BatchToken> batch, StepOutput output, const CancelToken& cancel) override;
  std::span<const float> output(std::size_t i) const override;
  std::size_t n_outputs() const override { return n_outputs_; }
  SequenceMemory& memory() override { return *cache_; }
  const LanguageModel& model() const override { return model_; }
  const RunnerOptions& options() const override { return options_; }

 private:
  StepRunner(const LoadedModel& model, const RunnerOptions& options) : model_(model), options_(options) {}
  Result<void> check(std::span<const BatchToken> batch) const;
  Result<void> prepare_graph(const StepShape& shape);
  void fill_inputs(std::span<const BatchToken> batch, const Placement& placement, std::span<const uint32_t> rows);

  const LoadedModel& model_;
  RunnerOptions options_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<StepGraph> graph_;  // allocated in executor_
  std::vector<float> results_;        // [n_outputs, row width]
  std::size_t n_outputs_ = 0;
  std::size_t row_width_ = 0;
  std::vector<ggml_fp16_t> mask_;  // scratch
};

}  // namespace hocket
