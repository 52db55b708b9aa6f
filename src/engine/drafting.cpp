#include "engine/drafting.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "runtime/speculative/draft_model.h"
#include "runtime/speculative/prompt_lookup.h"

namespace hocket {
namespace {

RunnerOptions draft_runner_options(RunnerOptions target) {
  target.n_seqs = 1;
  return target;
}

// Errors of the draft model's file say which of the two files they are about.
Error of_draft_model(Error error) {
  error.message = "the draft model: " + error.message;
  return error;
}

Result<void> load_draft_model(const LoadOptions& options, const Tokenizer& tokenizer, const LmRunner& target,
                              Drafting& out) {
  LoadOptions load = options;
  // The progress of the model is at its end and stays there, but the load can still be stopped.
  load.progress = [inner = options.progress](float) { return !inner || inner(1.0f); };
  TRY_ASSIGN(out.model, LanguageModel::load(out.file, load));
  const RunnerOptions runner_options = draft_runner_options(target.options());
  out.memory = out.model->plan(runner_options);
  TRY_ASSIGN(out.runner, LmRunner::create(*out.model, runner_options));

  DraftModelOptions source;
  source.n_vocab = std::min(tokenizer.size(), out.model->n_vocab());
  source.ends = tokenizer.end_of_generation();
  const auto bytes = [](const LanguageModel& model) {
    return static_cast<double>(std::max<uint64_t>(model.summary().weight_bytes, 1));
  };
  source.token_cost = bytes(*out.model) / bytes(target.model());
  out.source = std::make_unique<DraftModel>(*out.runner, std::move(source));
  return {};
}

}  // namespace

Result<std::shared_ptr<const GgufFile>> open_draft_model(const ServiceOptions& options, const Tokenizer& tokenizer) {
  if (options.drafts.kind != DraftOptions::Kind::kModel) return std::shared_ptr<const GgufFile>();
  GgufOptions file_options;
  file_options.use_mmap = options.use_mmap;
  file_options.use_mlock = options.use_mlock;
  auto file = GgufFile::open(options.drafts.model_path, file_options);
  if (!file) return of_draft_model(std::move(file).error());
  const auto draft_tokenizer = Tokenizer::load((*file)->metadata());
  if (!draft_tokenizer) return of_draft_model(draft_tokenizer.error());
  TRY(check_same_vocabulary(tokenizer, **draft_tokenizer));
  return std::shared_ptr<const GgufFile>(std::move(*file));
}

Result<std::unique_ptr<Drafting>> load_drafting(const ServiceOptions& options, std::shared_ptr<const GgufFile> file,
                                                const Tokenizer& tokenizer, const LmRunner& target) {
  auto drafting = std::make_unique<Drafting>();
  drafting->settings = {options.drafts.n_max, options.drafts.p_min};
  switch (options.drafts.kind) {
    case DraftOptions::Kind::kNone:
      return std::unique_ptr<Drafting>();
    case DraftOptions::Kind::kLookup:
      drafting->source = std::make_unique<PromptLookup>();
      break;
    case DraftOptions::Kind::kModel:
      drafting->file = std::move(file);
      if (auto loaded = load_draft_model(options.load, tokenizer, target, *drafting); !loaded) {
        return of_draft_model(std::move(loaded).error());
      }
      log_info("drafts by {}: {} MiB weights, {} MiB cache, {} MiB compute", options.drafts.model_path,
               drafting->memory.weight_bytes >> 20, drafting->memory.cache_bytes >> 20,
               drafting->memory.compute_bytes >> 20);
      break;
  }
  return drafting;
}

Result<MemoryPlan> plan_drafting(const ServiceOptions& options, const RunnerOptions& target) {
  if (options.drafts.kind != DraftOptions::Kind::kModel) return MemoryPlan();
  const auto plan = [&]() -> Result<MemoryPlan> {
    TRY_ASSIGN(const auto file, GgufFile::open(options.drafts.model_path));
    return plan_memory(*file, draft_runner_options(target), options.load);
  };
  auto result = plan();
  if (!result) return of_draft_model(std::move(result).error());
  return result;
}

}  // namespace hocket
