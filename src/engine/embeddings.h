// engine/embeddings.h: vectors of texts from the hidden states of a language model.
//
// Owns     the inputs of one request. Borrows the lanes' memory.
// Threads  see job.h; result() from any thread, once.
// Errors   those of steps, kCancelled, kTimeout; kInvalid for `dimensions` out of range.
// Cost     one pass over the weights per chunk of each input.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/job.h"
#include "engine/requests.h"
#include "runtime/lanes/prompt_run.h"

namespace hocket {

enum class Pooling { kMean, kLast, kCls };

// "mean", "last", "cls"; "" and "none" give kMean. kInvalid for anything else.
Result<Pooling> parse_pooling(std::string_view name);

// Cuts to `dimensions` if given, then scales to unit length (a zero vector stays).
void normalise(std::vector<float>& vector, std::optional<int> dimensions);

class EmbeddingJob : public Job {
 public:
  EmbeddingJob(std::shared_ptr<JobControl> control, LaneMemory& memory, std::vector<std::vector<TokenId>> inputs,
               Pooling pooling, std::optional<int> dimensions);

  LaneDemand demand() const override;
  Result<void> start() override;
  Result<StepWish> wish() override { return done() ? StepWish() : run_->wish(); }
  bool done() const override { return out_.vectors.size() == inputs_.size(); }
  void add_to(std::vector<BatchToken>& batch) override { run_->add_to(batch); }
  Result<void> take(const StepRows& rows, const StepFacts& facts) override;
  void stop() override;

  Numbers numbers() override;
  void complete() override;
  void fail(Error error) override;

  std::future<Result<EmbeddingResult>> result() { return promise_.get_future(); }

 private:
  void begin_input();
  void pool(const StepRows& rows, std::size_t first);
  void answer(Result<EmbeddingResult> result);

  LaneMemory* memory_;
  std::vector<std::vector<TokenId>> inputs_;
  Pooling pooling_;
  std::optional<int> dimensions_;
  Clock::time_point start_;
  Sequence seq_;
  // The present input.
  std::optional<PromptRun> run_;
  std::vector<double> sum_;
  std::vector<float> vector_;
  EmbeddingResult out_;
  Timings timings_;
  std::promise<Result<EmbeddingResult>> promise_;
  std::atomic<bool> answered_{false};
};

}  // namespace hocket
