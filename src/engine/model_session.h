// engine/model_session.h: a model file opened for a single task: measuring, evaluating given tokens.
//
// Owns     file, tokenizer, weights, runner.
// Threads  one user at a time.
// Errors   those of opening and loading; the tokenizer's when asked for it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "lm/language_model.h"
#include "lm/runner.h"
#include "tokenizer/tokenizer.h"
#include "weights/gguf.h"

namespace hocket {

struct ModelSessionOptions {
  std::string path;
  bool use_mmap = true;
  LoadOptions load;
  RunnerOptions runner;
};

class ModelSession {
 public:
  static Result<std::unique_ptr<ModelSession>> open(const ModelSessionOptions& options);
  // Another runner over the same weights; the one before is gone.
  Result<void> set_runner(const RunnerOptions& options);

  const GgufFile& file() const { return *file_; }
  const LanguageModel& model() const { return *model_; }
  LmRunner& runner() { return *runner_; }
  Result<std::unique_ptr<Tokenizer>> load_tokenizer() const { return Tokenizer::load(file_->metadata()); }

  // Evaluates `tokens` from an empty memory. For every row asked for (the last one, or all): its position and its
  // logits.
  Result<void> evaluate(const std::vector<TokenId>& tokens, bool every_row,
                        const std::function<Result<void>(std::size_t, std::span<const float>)>& on_row);

 private:
  std::shared_ptr<const GgufFile> file_;
  std::unique_ptr<LanguageModel> model_;
  std::unique_ptr<LmRunner> runner_;
};

}  // namespace hocket
