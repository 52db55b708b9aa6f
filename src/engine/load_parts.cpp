// From a model file to the parts of a service.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "engine/model_identity.h"
#include "engine/service.h"

namespace hocket {
namespace {

constexpr std::size_t kDefaultContext = 8192;

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

}  // namespace

RunnerOptions resolve_runner(const ServiceOptions& options, std::size_t n_trained) {
  RunnerOptions runner = options.runner;
  if (runner.n_ctx == 0) runner.n_ctx = n_trained == 0 ? kDefaultContext : std::min(n_trained, kDefaultContext);
  // Sequence 0 keeps the prompt; the choices of one request go on in copies.
  if (options.max_n > 1) runner.n_seqs = static_cast<std::size_t>(options.max_n) + 1;
  return runner;
}

Result<ServicePlan> plan_service(const ServiceOptions& options) {
  TRY_ASSIGN(const auto file, GgufFile::open(options.model_path));
  TRY_ASSIGN(const ModelSummary summary, inspect_model(*file));
  const RunnerOptions runner = resolve_runner(options, summary.n_ctx_train);
  TRY_ASSIGN(const MemoryPlan memory, plan_memory(*file, runner, options.load));
  TRY_ASSIGN(const MemoryPlan draft_memory, plan_drafting(options, runner));
  return ServicePlan{runner.n_ctx, memory, draft_memory};
}

Result<ServiceParts> load_parts(const ServiceOptions& options) {
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
  TRY_ASSIGN(auto draft_file, open_draft_model(options, *tokenizer));

  TRY_ASSIGN(auto model, LanguageModel::load(file, options.load));
  const std::size_t n_trained = model->summary().n_ctx_train;
  const RunnerOptions runner_options = resolve_runner(options, n_trained);
  if (n_trained != 0 && runner_options.n_ctx > n_trained) {
    log_warn("the context of {} tokens is longer than the {} that the model was trained with", runner_options.n_ctx,
             n_trained);
  }
  const MemoryPlan memory = model->plan(runner_options);
  log_info("{} tokens of context: {} MiB weights, {} MiB cache, {} MiB compute", runner_options.n_ctx,
           memory.weight_bytes >> 20, memory.cache_bytes >> 20, memory.compute_bytes >> 20);
  TRY_ASSIGN(auto runner, LmRunner::create(*model, runner_options));
  TRY_ASSIGN(auto drafting, load_drafting(options, std::move(draft_file), *tokenizer, *runner));
  std::string fingerprint = model_fingerprint(*file);
  return ServiceParts{std::move(file),        std::move(tokenizer),     std::move(model),
                      std::move(runner),      std::move(chat_template), sampling,
                      std::move(fingerprint), std::move(drafting)};
}

}  // namespace hocket
