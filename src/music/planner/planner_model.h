// music/planner/planner_model.h: the language model that plans songs: a Qwen3 file with names of its own, run by lm/.
//
// Owns     the open file, tokenizer, weights.
// Threads  const after load().
// Errors   load(): kBadModel naming key or tensor; kOutOfMemory.
// Cost     weights that need no rearrangement stay in the file's pages.
// Source   ace-step.md §2.2, G-4.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "lm/language_model.h"
#include "lm/runner.h"
#include "music/planner/metadata_machine.h"
#include "music/tokens.h"

namespace hocket {

struct PlannerOptions {
  std::string device;
  std::size_t max_seq = 8192;  // tokens of one sequence
  int n_threads = 0;
};

class PlannerModel {
 public:
  static Result<std::unique_ptr<PlannerModel>> load(const std::string& path, const PlannerOptions& options);
  // The same without weights in memory: for plan() only.
  static Result<std::unique_ptr<PlannerModel>> declare(const std::string& path, const PlannerOptions& options);

  const LanguageModel& model() const { return *model_; }
  const MusicTokenizer& tokenizer() const { return *tokenizer_; }
  const MetadataRules& rules() const { return *rules_; }
  std::shared_ptr<const MetadataRules> shared_rules() const { return rules_; }
  const PlannerOptions& options() const { return options_; }
  // Of sequences side by side, with so many tokens in all.
  RunnerOptions runner_options(std::size_t n_seqs, std::size_t n_tokens) const;
  // What the model takes with them.
  MemoryPlan plan(std::size_t n_seqs, std::size_t n_tokens) const {
    return model_->plan(runner_options(n_seqs, n_tokens));
  }

 private:
  PlannerModel() = default;
  static Result<std::unique_ptr<PlannerModel>> open(const std::string& path, const PlannerOptions& options,
                                                    bool with_weights);

  PlannerOptions options_;
  std::shared_ptr<const GgufFile> file_;
  std::unique_ptr<MusicTokenizer> tokenizer_;
  std::shared_ptr<const MetadataRules> rules_;
  std::unique_ptr<LanguageModel> model_;
};

// The hyper-parameters of such a file under the keys of "qwen3".
Result<Metadata> planner_metadata(const Metadata& file);

}  // namespace hocket
