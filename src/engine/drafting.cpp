#include "engine/drafting.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "runtime/speculative/draft_model.h"
#include "runtime/speculative/nextn_drafts.h"
#include "runtime/speculative/prompt_lookup.h"

namespace hocket {
namespace {

RunnerOptions draft_runner_options(RunnerOptions target, std::size_t n_lanes) {
  target.n_seqs = n_lanes;
  target.n_cells = target.n_ctx * n_lanes;
  target.n_rollback = 1;
  target.n_checkpoints = 0;
  return target;
}

bool has_file(const DraftOptions& options) {
  return options.kind == DraftOptions::Kind::kModel ||
         (options.kind == DraftOptions::Kind::kNextn && !options.model_path.empty());
}

// Errors of the draft model's file say which of the two files they are about.
Error of_draft_model(Error error) {
  error.message = "the draft model: " + error.message;
  return error;
}

// The progress of the model is at its end and stays there, but the load can still be stopped.
LoadOptions beside(const LoadOptions& model) {
  LoadOptions load = model;
  load.progress = [inner = model.progress](float) { return !inner || inner(1.0f); };
  return load;
}

// The block alone, from a file of its own.
LoadOptions block_alone(LoadOptions load) {
  load.nextn = LoadOptions::Nextn::kAlone;
  return load;
}

Result<void> load_draft_model(const ServiceOptions& options, const Tokenizer& tokenizer, const LmRunner& target,
                              Drafting& out) {
  TRY_ASSIGN(out.model, LanguageModel::load(out.file, beside(options.load)));
  const std::size_t n_lanes = resolve_lanes(options);
  const RunnerOptions runner_options = draft_runner_options(target.options(), n_lanes);
  out.memory = out.model->plan(runner_options);
  TRY_ASSIGN(out.runner, LmRunner::create(*out.model, runner_options));

  DraftModelOptions source;
  source.n_vocab = std::min(tokenizer.size(), out.model->n_vocab());
  source.ends = tokenizer.end_of_generation();
  const auto bytes = [](const LanguageModel& model) {
    return static_cast<double>(std::max<uint64_t>(model.summary().weight_bytes, 1));
  };
  source.token_cost = bytes(*out.model) / bytes(target.model());
  for (std::size_t lane = 0; lane < n_lanes; ++lane)
    out.sources.push_back(std::make_unique<DraftModel>(*out.runner, source, static_cast<SeqId>(lane)));
  return {};
}

// The block of the model itself, or of `out.file`.
Result<void> load_nextn(const ServiceOptions& options, const Tokenizer& tokenizer, const LmRunner& target,
                        Drafting& out) {
  const LanguageModel* with_block = &target.model();
  const ModelSummary& model = target.model().summary();
  if (out.file) {
    TRY_ASSIGN(out.model, LanguageModel::load(out.file, block_alone(beside(options.load))));
    with_block = out.model.get();
    const ModelSummary& block = with_block->summary();
    if (block.arch != model.arch || block.n_embd != model.n_embd || block.n_vocab != model.n_vocab)
      return Error(ErrorCode::kInvalid, "this NextN block belongs to another model", "mtp");
  }
  const std::size_t n_lanes = resolve_lanes(options);
  const RunnerOptions runner_options = draft_runner_options(target.options(), n_lanes);
  out.memory = with_block->plan_nextn(runner_options);
  TRY_ASSIGN(out.runner, LmRunner::create_nextn(*with_block, runner_options));
  NextnDraftOptions source;
  source.n_embd = model.n_embd;
  source.n_vocab = std::min(tokenizer.size(), model.n_vocab);
  source.ends = tokenizer.end_of_generation();
  source.n_chunk = std::min(options.n_chunk, target.options().n_batch);
  // A guess takes a layer and the head.
  const auto n_params = static_cast<double>(std::max<uint64_t>(model.n_params, 1));
  source.token_cost = 1.0 / static_cast<double>(std::max<std::size_t>(model.n_layer, 1)) +
                      static_cast<double>(model.n_embd) * static_cast<double>(model.n_vocab) / n_params;
  for (std::size_t lane = 0; lane < n_lanes; ++lane)
    out.sources.push_back(std::make_unique<NextnDrafts>(*out.runner, source, static_cast<SeqId>(lane)));
  return {};
}

}  // namespace

DraftOptions resolve_drafts(const DraftOptions& options, const ModelSummary& summary) {
  DraftOptions resolved = options;
  if (options.kind == DraftOptions::Kind::kNextnIfPresent)
    resolved.kind = summary.nextn ? DraftOptions::Kind::kNextn : DraftOptions::Kind::kNone;
  return resolved;
}

std::size_t n_drafted_at_most(const DraftOptions& options) {
  switch (options.kind) {
    case DraftOptions::Kind::kNone:
      return 0;
    case DraftOptions::Kind::kLookup:
      return options.n_max.value_or(PromptLookup::kLongest);
    case DraftOptions::Kind::kModel:
      return options.n_max.value_or(DraftModel::kLongest);
    default:
      return options.n_max.value_or(NextnDrafts::kLongest);
  }
}

LoadOptions load_for_drafts(const ServiceOptions& options) {
  LoadOptions load = options.load;
  const bool own = options.drafts.kind == DraftOptions::Kind::kNextn && options.drafts.model_path.empty();
  load.nextn = own ? LoadOptions::Nextn::kIfPresent : LoadOptions::Nextn::kLeaveOut;
  return load;
}

Result<std::shared_ptr<const GgufFile>> open_draft_model(const ServiceOptions& options, const Tokenizer& tokenizer) {
  if (!has_file(options.drafts)) return std::shared_ptr<const GgufFile>();
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
  drafting->settings = {options.drafts.n_max, options.drafts.p_min, options.drafts.n_min};
  switch (options.drafts.kind) {
    case DraftOptions::Kind::kNone:
    case DraftOptions::Kind::kNextnIfPresent:  // resolved before
      return std::unique_ptr<Drafting>();
    case DraftOptions::Kind::kNextn:
      drafting->file = std::move(file);
      TRY(load_nextn(options, tokenizer, target, *drafting));
      log_info("drafts by the NextN block: {} MiB weights of its own, {} MiB cache, {} MiB compute",
               drafting->memory.weight_bytes >> 20, drafting->memory.cache_bytes >> 20,
               drafting->memory.compute_bytes >> 20);
      break;
    case DraftOptions::Kind::kLookup:
      for (std::size_t lane = 0; lane < resolve_lanes(options); ++lane)
        drafting->sources.push_back(std::make_unique<PromptLookup>());
      break;
    case DraftOptions::Kind::kModel:
      drafting->file = std::move(file);
      if (auto loaded = load_draft_model(options, tokenizer, target, *drafting); !loaded) {
        return of_draft_model(std::move(loaded).error());
      }
      log_info("drafts by {}: {} MiB weights, {} MiB cache, {} MiB compute", options.drafts.model_path,
               drafting->memory.weight_bytes >> 20, drafting->memory.cache_bytes >> 20,
               drafting->memory.compute_bytes >> 20);
      break;
  }
  return drafting;
}

Result<MemoryPlan> plan_drafting(const ServiceOptions& options, const GgufFile& model_file,
                                 const RunnerOptions& target) {
  const RunnerOptions runner = draft_runner_options(target, resolve_lanes(options));
  if (options.drafts.kind == DraftOptions::Kind::kNextn && !has_file(options.drafts))
    return plan_nextn_memory(model_file, runner, options.load);
  if (!has_file(options.drafts)) return MemoryPlan();
  const auto plan = [&]() -> Result<MemoryPlan> {
    TRY_ASSIGN(const auto file, GgufFile::open(options.drafts.model_path));
    if (options.drafts.kind == DraftOptions::Kind::kModel) return plan_memory(*file, runner, options.load);
    return plan_nextn_memory(*file, runner, block_alone(options.load));
  };
  auto result = plan();
  if (!result) return of_draft_model(std::move(result).error());
  return result;
}

}  // namespace hocket
