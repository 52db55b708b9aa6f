// lm/step_runner.h: the LmRunner of a part of a LoadedModel over a ModelMemory.
//
// Owns     memory, executor, the graph of the last shape.
// Threads  one user at a time.
#pragma once

#include <memory>
#include <vector>

#include "compute/executor.h"
#include "lm/loaded_model.h"
#include "lm/runner.h"
#include "lm/step_graph.h"

namespace hocket {

ModelMemoryOptions memory_options(const RunnerOptions& options);
bool uses_flash_attention(const RunnerOptions& options);
// The step that needs the most memory in ordinary use: a full batch, and a row of logits for each sequence.
StepShape largest_step(const ModelMemory& memory, const RunnerOptions& options);

class StepRunner final : public LmRunner {
 public:
  // `part` is one of the model's.
  static Result<std::unique_ptr<StepRunner>> create(const LoadedModel& model, const ModelPart& part,
                                                    const RunnerOptions& options);

  Result<void> step(std::span<const BatchToken> batch, StepOutput output, const CancelToken& cancel) override;
  Result<void> step_from(std::span<const float> activations, std::span<const BatchToken> batch, StepOutput output,
                         const CancelToken& cancel) override;
  std::span<const float> output(std::size_t i) const override;
  std::size_t n_outputs() const override { return n_outputs_; }
  void skip_logits_below(int32_t token) override;
  std::span<const float> hidden(std::size_t i) const override;
  SequenceMemory& memory() override { return *memory_; }
  const LanguageModel& model() const override { return model_; }
  const RunnerOptions& options() const override { return options_; }
  bool rows_independent() const override { return rows_independent_; }

 private:
  // Rows of floats, read back from a step.
  struct RowsBack {
    std::vector<float> values;
    std::size_t width = 0;
    // Row i of the result is row order[i] of the tensor, after n_skipped values of −∞.
    void read(Tensor tensor, std::span<const uint32_t> order, std::size_t n_skipped = 0);
    std::span<const float> row(std::size_t i) const { return std::span(values).subspan(i * width, width); }
  };

  StepRunner(const LoadedModel& model, const ModelPart& part, const RunnerOptions& options)
      : model_(model), part_(part), options_(options) {}
  Result<void> check(std::span<const float> activations, std::span<const BatchToken> batch, StepOutput output) const;
  // The order in which a batch is evaluated: as it is, or sequence by sequence where states need that.
  std::vector<uint32_t> evaluation_order(std::span<const BatchToken> batch) const;
  Result<void> prepare_graph(const StepShape& shape);

  const LoadedModel& model_;
  const ModelPart& part_;
  RunnerOptions options_;
  std::unique_ptr<ModelMemory> memory_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<StepGraph> graph_;  // allocated in executor_
  RowsBack results_, hidden_;
  std::size_t n_outputs_ = 0;
  int64_t first_logit_ = 0;
  bool rows_independent_ = false;
};

}  // namespace hocket
