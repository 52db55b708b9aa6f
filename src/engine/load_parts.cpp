// From a model file to the parts of a service.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "engine/model_identity.h"
#include "engine/process_usage.h"
#include "engine/service.h"
#include "memory/cell_pool.h"

namespace hocket {
namespace {

constexpr std::size_t kDefaultContext = 8192;
constexpr std::size_t kLanesAtTheirLongest = 4;
constexpr std::size_t kKeptPrompts = 16;

Result<std::unique_ptr<ChatTemplate>> load_template(const Metadata& metadata, const Tokenizer& tokenizer,
                                                    const std::string& replacement) {
  const SpecialTokens& special = tokenizer.special();
  const std::string bos = special.bos == kNoToken ? "" : tokenizer.piece(special.bos, true);
  const std::string eos = special.eos == kNoToken ? "" : tokenizer.piece(special.eos, true);
  if (!replacement.empty()) return ChatTemplate::parse(replacement, bos, eos);
  TRY_ASSIGN(std::string source, metadata.string_or("tokenizer.chat_template", ""));
  if (source.empty()) {
    log_warn("the model file has no chat template; chats use ChatML");
    source = default_chat_template();
  }
  return ChatTemplate::parse(std::move(source), bos, eos);
}

// An estimate is no reason to refuse: page cache, swap and other programs may give way.
void warn_if_short(const MemoryPlan& memory, const std::string& device) {
  if (!device.empty() && device != "CPU") return;
  const std::size_t needed = memory.total_bytes();
  const std::size_t available = available_memory_bytes();
  if (available == 0 || needed <= available) return;
  log_warn("the model needs about {} MiB, but only {} MiB of memory are available; it may be slow or end the program",
           needed >> 20, available >> 20);
}

}  // namespace

std::size_t resolve_lanes(const ServiceOptions& options) {
  constexpr std::size_t kDefault = 8;
  return options.n_parallel == 0 ? kDefault : options.n_parallel;
}

RunnerOptions resolve_runner(const ServiceOptions& options, const ModelSummary& summary) {
  const std::size_t n_trained = summary.n_ctx_train;
  RunnerOptions runner = options.runner;
  if (runner.n_ctx == 0) runner.n_ctx = n_trained == 0 ? kDefaultContext : std::min(n_trained, kDefaultContext);
  const std::size_t n_lanes = resolve_lanes(options);
  if (runner.n_cells == 0) runner.n_cells = runner.n_ctx * std::min(n_lanes, kLanesAtTheirLongest);
  // A prompt of each lane, the choices of one request, and prompts that are kept.
  const std::size_t n_choices = options.max_n > 1 ? static_cast<std::size_t>(options.max_n) : 0;
  runner.n_seqs = std::min(n_lanes + n_choices + kKeptPrompts, kMaxSeqs);
  runner.n_rollback = n_drafted_at_most(options.drafts) + 1;
  return runner;
}

Result<ServicePlan> plan_service(const ServiceOptions& options) {
  TRY_ASSIGN(const std::vector<ServicePlan> plans, plan_contexts(options, {options.runner.n_ctx}));
  return plans.front();
}

Result<std::vector<ServicePlan>> plan_contexts(const ServiceOptions& options, const std::vector<std::size_t>& sizes) {
  TRY_ASSIGN(const auto file, GgufFile::open(options.model_path));
  TRY_ASSIGN(const ModelSummary summary, inspect_model(*file, options.load));
  std::vector<ServicePlan> plans;
  for (const std::size_t n_ctx : sizes) {
    ServiceOptions sized = options;
    sized.runner.n_ctx = n_ctx;
    sized.drafts = resolve_drafts(options.drafts, summary);
    const RunnerOptions runner = resolve_runner(sized, summary);
    TRY_ASSIGN(const MemoryPlan memory, plan_memory(*file, runner, load_for_drafts(sized)));
    TRY_ASSIGN(const MemoryPlan draft_memory, plan_drafting(sized, *file, runner));
    plans.push_back({runner.n_ctx, resolve_lanes(options), runner.n_cells, summary.n_ctx_train, memory, draft_memory});
  }
  return plans;
}

Result<ServiceParts> load_parts(const ServiceOptions& asked) {
  ServiceOptions options = asked;
  GgufOptions file_options;
  file_options.use_mmap = options.use_mmap;
  file_options.use_mlock = options.use_mlock;
  TRY_ASSIGN(std::shared_ptr<const GgufFile> file, GgufFile::open(options.model_path, file_options));
  const Metadata& metadata = file->metadata();
  // What is cheap to find wrong comes before the weights.
  TRY_ASSIGN(auto tokenizer, Tokenizer::load(metadata));
  TRY_ASSIGN(const SamplingParams sampling, model_sampling(metadata));
  auto chat_template = load_template(metadata, *tokenizer, options.chat_template);
  if (!chat_template) {
    if (!options.chat_template.empty()) return chat_template.error();
    log_warn("the model's chat template cannot be used: {}", chat_template.error().message);
  }
  TRY_ASSIGN(const ModelSummary summary, inspect_model(*file, options.load));
  options.drafts = resolve_drafts(options.drafts, summary);
  if (options.drafts.kind == DraftOptions::Kind::kNextn && options.drafts.model_path.empty() && !summary.nextn)
    return Error(ErrorCode::kUnsupported, "the model's file has no NextN block to draft with", "mtp");
  TRY_ASSIGN(auto draft_file, open_draft_model(options, *tokenizer));

  const std::size_t n_trained = summary.n_ctx_train;
  const RunnerOptions runner_options = resolve_runner(options, summary);
  if (n_trained != 0 && runner_options.n_ctx > n_trained) {
    log_warn("the context of {} tokens is longer than the {} that the model was trained with", runner_options.n_ctx,
             n_trained);
  }
  TRY_ASSIGN(const MemoryPlan memory, plan_memory(*file, runner_options, load_for_drafts(options)));
  log_info("{} tokens of context: {} MiB weights, {} MiB cache, {} MiB compute", runner_options.n_ctx,
           memory.weight_bytes >> 20, memory.cache_bytes >> 20, memory.compute_bytes >> 20);
  warn_if_short(memory, options.load.device);
  TRY_ASSIGN(auto model, LanguageModel::load(file, load_for_drafts(options)));
  TRY_ASSIGN(auto runner, LmRunner::create(*model, runner_options));
  TRY_ASSIGN(auto drafting, load_drafting(options, std::move(draft_file), *tokenizer, *runner));
  TRY_ASSIGN(StateIdentity identity,
             identify_model(*file, model->summary(), options.load.device, runner_options, options.n_chunk));
  std::string fingerprint = model_fingerprint(*file);
  return ServiceParts{std::move(file),        std::move(tokenizer),     std::move(model),
                      std::move(runner),      std::move(chat_template), sampling,
                      std::move(fingerprint), std::move(drafting),      std::move(identity)};
}

}  // namespace hocket
