// engine/embeddings.h: vectors of texts from the hidden states of a language model.
//
// Owns     the inputs of one request.
// Threads  run() on the generation thread; result() from any thread, once.
// Errors   those of steps, kCancelled, kTimeout; kInvalid for `dimensions` out of range.
// Cost     one pass over the weights per n_batch tokens of each input.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/job.h"
#include "engine/requests.h"

namespace hocket {

enum class Pooling { kMean, kLast, kCls };

// "mean", "last", "cls"; "" and "none" give kMean. kInvalid for anything else.
Result<Pooling> parse_pooling(std::string_view name);

// Cuts to `dimensions` if given, then scales to unit length (a zero vector stays).
void normalise(std::vector<float>& vector, std::optional<int> dimensions);

class EmbeddingJob : public Job {
 public:
  EmbeddingJob(std::shared_ptr<JobControl> control, std::vector<std::vector<TokenId>> inputs, Pooling pooling,
               std::optional<int> dimensions);

  Result<void> run(PromptLane& lane) override;
  Numbers numbers() override;
  void complete() override;
  void fail(Error error) override;

  std::future<Result<EmbeddingResult>> result() { return promise_.get_future(); }

 private:
  Result<std::vector<float>> embed(PromptLane& lane, const std::vector<TokenId>& input);
  void settle(Result<EmbeddingResult> result);

  std::vector<std::vector<TokenId>> inputs_;
  Pooling pooling_;
  std::optional<int> dimensions_;
  EmbeddingResult out_;
  Timings timings_;
  std::promise<Result<EmbeddingResult>> promise_;
  std::atomic<bool> settled_{false};
};

}  // namespace hocket
