#include "engine/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "base/log.h"
#include "base/random_id.h"
#include "engine/queued_reply.h"
#include "store/model_folder.h"

namespace hocket {
namespace {

Clock::time_point after(Clock::time_point from, double limit_ms) {
  constexpr double kLongest = 1e12;  // some 30 years
  if (!(limit_ms > 0) || limit_ms > kLongest) return Clock::time_point::max();
  return from + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(limit_ms));
}

std::string token_text(const Tokenizer& tokenizer, TokenId id) {
  return id == kNoToken ? std::string() : tokenizer.piece(id, true);
}

LaneMemoryOptions lane_options(const ServiceOptions& options) {
  LaneMemoryOptions lanes;
  lanes.n_chunk = options.n_chunk;
  return lanes;
}

DraftPool take_sources(Drafting* drafting) {
  return drafting ? DraftPool(std::move(drafting->sources)) : DraftPool();
}

std::size_t chunk_of(const ServiceOptions& options, const LmRunner& runner) {
  return std::clamp<std::size_t>(options.n_chunk, 1, runner.options().n_batch);
}

Result<std::unique_ptr<SessionStore>> open_sessions(const SessionOptions& options, const ServiceParts& parts,
                                                    std::size_t n_chunk) {
  SessionStoreOptions store;
  store.folder = options.folder;
  store.most_ram_bytes = options.most_ram_bytes;
  store.most_disk_bytes = options.most_disk_bytes;
  store.identity = parts.identity;
  store.rules.n_chunk = n_chunk;
  store.rules.exact = parts.runner->rows_independent();
  return SessionStore::open(std::move(store));
}

}  // namespace

Result<std::shared_ptr<ChatService>> ChatService::load(const ServiceOptions& options) {
  TRY_ASSIGN(ServiceParts parts, load_parts(options));
  return make_service(std::move(parts), options);
}

Result<std::shared_ptr<ChatService>> make_service(ServiceParts parts, const ServiceOptions& options) {
  TRY_ASSIGN(const Pooling pooling,
             parse_pooling(options.pooling.empty() ? parts.model->summary().pooling : options.pooling));
  TRY_ASSIGN(auto grammars, GrammarCompiler::create(*parts.tokenizer, parts.model->n_vocab()));
  // Server-wide sampling settings are checked now rather than with the first request.
  const SamplingParams sampling = apply_params(parts.model_sampling, options.defaults);
  const std::size_t n_ctx = parts.runner->options().n_ctx;
  TRY_ASSIGN(auto trial, Sampler::create(sampling, *parts.tokenizer, parts.model->n_vocab(), n_ctx));
  if (!parts.sessions) {
    TRY_ASSIGN(parts.sessions, open_sessions(options.sessions, parts, chunk_of(options, *parts.runner)));
  }
  return std::shared_ptr<ChatService>(
      std::make_shared<LocalChatService>(std::move(parts), options, std::move(grammars), pooling));
}

LocalChatService::LocalChatService(ServiceParts parts, const ServiceOptions& options,
                                   std::unique_ptr<GrammarCompiler> grammars, Pooling pooling)
    : parts_(std::move(parts)),
      options_(options),
      grammars_(std::move(grammars)),
      pooling_(pooling),
      n_ctx_(parts_.runner->options().n_ctx),
      prompts_(*parts_.tokenizer, std::move(parts_.chat_template), n_ctx_),
      lanes_(*parts_.runner, lane_options(options), take_sources(parts_.drafting.get())),
      metrics_(std::make_shared<MetricsRecorder>()),
      queue_(std::make_shared<RequestQueue>(options.max_queue, resolve_lanes(options), metrics_)),
      loop_(lanes_, resolve_lanes(options), queue_, metrics_) {
  info_.aliases = options.aliases;
  info_.model_id = options.aliases.empty() ? model_name(options.model_path) : options.aliases.front();
  info_.model_path = options.model_path;
  info_.model = parts_.model->summary();
  info_.n_ctx = n_ctx_;
  const MemoryTraits traits = parts_.runner->memory().traits();
  bytes_per_token_ = traits.bytes_per_token;
  bytes_per_sequence_ = traits.bytes_per_sequence;
  info_.n_lanes = resolve_lanes(options);
  info_.n_cells = parts_.runner->memory().n_cells();
  info_.memory = parts_.model->plan(parts_.runner->options());
  info_.drafts = resolve_drafts(options.drafts, parts_.model->summary());
  if (parts_.drafting) info_.draft_memory = parts_.drafting->memory;
  info_.bos_text = token_text(*parts_.tokenizer, parts_.tokenizer->special().bos);
  info_.eos_text = token_text(*parts_.tokenizer, parts_.tokenizer->special().eos);
  info_.fingerprint = parts_.fingerprint;
  info_.created =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  if (const ChatTemplate* chat_template = prompts_.chat_template()) {
    info_.chat_template = chat_template->source();
    info_.thinking = chat_template->capabilities().thinking || !prompts_.format().think_open.empty();
    info_.tools = chat_template->capabilities().tools;
  }
  info_.default_sampling = apply_params(parts_.model_sampling, options.defaults);
  thread_ = std::thread([this] { loop_.run(); });
}

LocalChatService::~LocalChatService() {
  queue_->close();
  thread_.join();
}

// ---- requests

std::shared_ptr<JobControl> LocalChatService::make_control(std::string id, const char* prefix) const {
  auto control = std::make_shared<JobControl>();
  control->id = id.empty() ? prefix + random_id() : std::move(id);
  return control;
}

Result<GenerationPlan> LocalChatService::make_plan(const GenerationParams& params, const ServingParams& serving) const {
  GenerationLimits limits;
  limits.max_n = options_.max_n;
  TRY(check_generation(params, limits, *parts_.tokenizer));
  GenerationPlan plan;
  plan.n_choices = static_cast<std::size_t>(params.n);
  const std::optional<int64_t> max_tokens = params.max_tokens ? params.max_tokens : options_.defaults.max_tokens;
  if (max_tokens) plan.max_tokens = static_cast<std::size_t>(*max_tokens);
  plan.n_ctx = n_ctx_;
  std::copy_if(params.stop.begin(), params.stop.end(), std::back_inserter(plan.generation.stops),
               [](const std::string& stop) { return !stop.empty(); });
  if (params.logprobs) plan.generation.top_logprobs = params.top_logprobs;
  plan.sampling = apply_params(info_.default_sampling, params);
  TRY_ASSIGN(plan.sampler, Sampler::create(plan.sampling, *parts_.tokenizer, parts_.model->n_vocab(), n_ctx_));
  plan.sampling.seed = static_cast<int64_t>(plan.sampler->seed());
  if (parts_.drafting) plan.drafts = parts_.drafting->settings;
  plan.serving = serving;
  return plan;
}

Result<std::unique_ptr<Reply>> LocalChatService::chat(ChatRequest request) {
  auto control = make_control(std::move(request.request_id), "chatcmpl-");
  TRY(queue_->admits(control->id));
  TRY_ASSIGN(GenerationPlan plan, make_plan(request.params, request.serving));
  if (plan.max_tokens == std::size_t{0}) {
    return Error(ErrorCode::kInvalid, "max_tokens must be at least 1", "max_tokens");
  }
  TRY_ASSIGN(PreparedChat prepared, prompts_.chat(request));
  TRY_ASSIGN(plan.constraint, make_constraint(*grammars_, *parts_.tokenizer, prompts_.format(), prepared.tools,
                                              request.tool_choice, request.parallel_tool_calls, request.response_format,
                                              request.params.grammar, prepared.opens_thinking));
  const bool reads_tags = !prepared.tools.empty() || !prompts_.format().think_open.empty();
  plan.generation.show_special = prompts_.format().shows_special && reads_tags;
  plan.format = prompts_.format();
  plan.tools = std::move(prepared.tools);
  plan.opens_thinking = prepared.opens_thinking;
  control->tenant = std::move(request.user);
  plan.prompts.push_back(std::move(prepared.prompt));
  TRY(open_session(control->tenant, plan));
  return submit(std::move(control), std::move(plan));
}

Result<std::unique_ptr<Reply>> LocalChatService::complete(CompletionRequest request) {
  auto control = make_control(std::move(request.request_id), "cmpl-");
  TRY(queue_->admits(control->id));
  TRY_ASSIGN(GenerationPlan plan, make_plan(request.params, request.serving));
  if (plan.max_tokens == std::size_t{0} && !request.echo) {
    return Error(ErrorCode::kInvalid, "max_tokens must be at least 1 unless echo is set", "max_tokens");
  }
  if (request.echo && !request.suffix.empty()) {
    return Error(ErrorCode::kInvalid, "echo and suffix cannot be used together", "echo");
  }
  if (request.prompts.empty()) return Error(ErrorCode::kInvalid, "the prompt must not be empty", "prompt");
  for (const Prompt& prompt : request.prompts) {
    TRY_ASSIGN(PreparedPrompt prepared, prompts_.completion(prompt, request.suffix));
    plan.prompts.push_back(std::move(prepared));
  }
  TRY_ASSIGN(plan.constraint,
             make_constraint(*grammars_, *parts_.tokenizer, ReplyFormat{}, {}, ToolChoice{ToolChoiceKind::kNone, {}},
                             false, request.response_format, request.params.grammar, false));
  plan.echo = request.echo;
  control->tenant = std::move(request.user);
  TRY(open_session(control->tenant, plan));
  return submit(std::move(control), std::move(plan));
}

Result<void> LocalChatService::open_session(const std::string& tenant, GenerationPlan& plan) {
  const ServingParams& serving = plan.serving;
  if (serving.session_id.empty()) return {};
  if (plan.prompts.size() != 1)
    return Error(ErrorCode::kInvalid, "a session is one conversation: session_id needs a single prompt", "session_id");
  SessionName name{tenant, serving.session_id};
  plan.session = serving.cache_prompt ? SessionUse::open(sessions(), std::move(name), plan.prompts.front().ids,
                                                         serving.reuse_generated_state)
                                      : SessionUse::drop(sessions(), std::move(name));
  return {};
}

Result<std::unique_ptr<Reply>> LocalChatService::submit(std::shared_ptr<JobControl> control, GenerationPlan plan) {
  for (const PreparedPrompt& prompt : plan.prompts) control->prompt_total += prompt.ids.size();
  if (plan.serving.flow_window > 0) {
    const Clock::time_point now = Clock::now(), limit = after(now, options_.flow_timeout_ms);
    const Clock::duration timeout = limit == Clock::time_point::max() ? Clock::duration::max() : limit - now;
    control->flow = std::make_shared<FlowControl>(plan.serving.flow_window, timeout);
  }
  auto channel = std::make_shared<ReplyChannel>(control->flow);
  const bool acknowledges = plan.serving.flow_window > 0;
  auto job = std::make_shared<GenerationJob>(control, *parts_.tokenizer, lanes_, std::move(plan), channel);
  TRY(enqueue(control, std::move(job)));
  if (acknowledges) flows_.add(control->id, control->flow, channel);
  return std::unique_ptr<Reply>(std::make_unique<QueuedReply>(std::move(control), std::move(channel), queue_));
}

Result<void> LocalChatService::enqueue(const std::shared_ptr<JobControl>& control, std::shared_ptr<Job> job) {
  control->queued = Clock::now();
  control->queue_deadline = after(control->queued, options_.queue_timeout_ms);
  control->deadline = after(control->queued, options_.request_timeout_ms);
  return queue_->push(std::move(job));
}

Result<EmbeddingResult> LocalChatService::embed(EmbeddingRequest request, CancelToken cancel) {
  auto control = make_control(std::move(request.request_id), "embd-");
  TRY(queue_->admits(control->id));
  const auto n_embd = static_cast<int64_t>(parts_.model->summary().n_embd);
  if (request.dimensions && (*request.dimensions < 1 || *request.dimensions > n_embd)) {
    return Error(ErrorCode::kInvalid, fmt::format("dimensions must be between 1 and {}", n_embd), "dimensions");
  }
  if (request.inputs.empty()) return Error(ErrorCode::kInvalid, "input must not be empty", "input");
  std::vector<std::vector<TokenId>> inputs;
  for (const Prompt& input : request.inputs) {
    TRY_ASSIGN(std::vector<TokenId> ids, prompts_.embedding(input));
    control->prompt_total += ids.size();
    inputs.push_back(std::move(ids));
  }
  auto job = std::make_shared<EmbeddingJob>(control, lanes_, std::move(inputs), pooling_, request.dimensions);
  std::future<Result<EmbeddingResult>> result = job->result();
  TRY(enqueue(control, std::move(job)));
  while (result.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
    if (cancel.cancelled()) queue_->withdraw(*control);
    if (Clock::now() >= control->queue_deadline) queue_->expire();
  }
  return result.get();
}

// ---- text

Result<std::vector<TokenId>> LocalChatService::tokenize(std::string_view text, const EncodeOptions& options) {
  return parts_.tokenizer->encode(text, options);
}

Result<std::string> LocalChatService::detokenize(const std::vector<TokenId>& ids) {
  for (const TokenId id : ids) {
    if (!parts_.tokenizer->valid_id(id)) {
      return Error(ErrorCode::kInvalid, fmt::format("token {} is not in the vocabulary", id), "tokens");
    }
  }
  return parts_.tokenizer->decode(ids, true);
}

std::string LocalChatService::token_bytes(TokenId id) const {
  return parts_.tokenizer->valid_id(id) ? parts_.tokenizer->piece(id, true) : std::string();
}

Result<std::string> LocalChatService::apply_template(const ChatRequest& request) {
  return prompts_.render(request);
}

// ---- control

Result<void> LocalChatService::cancel(std::string_view request_id) {
  if (request_id.empty()) return Error(ErrorCode::kInvalid, "request_id must not be empty", "request_id");
  return queue_->cancel(request_id);
}

Result<void> LocalChatService::acknowledge(std::string_view request_id, uint64_t sequence) {
  if (auto acknowledged = flows_.acknowledge(request_id, sequence)) {
    TRY(*acknowledged);
    queue_->wake();
    return {};
  }
  // Without a window nothing is acknowledged.
  return queue_->change(request_id, [&](Job& job) { return job.control().flow->acknowledge(sequence); });
}

Result<void> LocalChatService::pause(std::string_view request_id) {
  return queue_->change(request_id, [](Job& job) -> Result<void> {
    job.control().flow->pause();
    return {};
  });
}

Result<void> LocalChatService::resume(std::string_view request_id) {
  return queue_->change(request_id, [](Job& job) -> Result<void> {
    job.control().flow->resume();
    return {};
  });
}

CacheReport LocalChatService::cache() const {
  CacheReport report;
  report.prefixes = lanes_.prefixes().stats();
  report.resident_bytes = report.prefixes.n_tokens * bytes_per_token_ + report.prefixes.n_entries * bytes_per_sequence_;
  return report;
}

Result<void> LocalChatService::clear_cache() {
  std::promise<void> done;
  const bool posted = queue_->post([&] {
    lanes_.prefixes().clear();
    done.set_value();
  });
  if (!posted) {
    Error error(ErrorCode::kBusy, "the server is shutting down");
    error.reason = "draining";
    return error;
  }
  done.get_future().wait();
  return {};
}

ServiceMetrics LocalChatService::metrics() const {
  ServiceMetrics all = metrics_->snapshot();
  for (const RequestStatus& request : queue_->status()) {
    ++(request.phase == RequestPhase::kQueued ? all.n_queued : all.n_running);
  }
  return all;
}

void LocalChatService::drain(std::chrono::milliseconds limit) {
  const auto start = Clock::now();
  queue_->refuse_new();
  if (queue_->wait_idle(limit)) {
    // The last job has left the queue; its save is asked for in the same turn of the generation thread.
    std::promise<void> turned;
    if (queue_->post([&] { turned.set_value(); })) turned.get_future().wait();
    const auto left = limit - std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
    if (!sessions().wait_idle(std::max(left, std::chrono::milliseconds(0))))
      log_warn("sessions are still being saved after {} ms; those that wait are skipped", limit.count());
    return;
  }
  log_warn("requests are still running after {} ms; cancelling them", limit.count());
  queue_->cancel_all();
  queue_->wait_idle(std::chrono::seconds(10));  // a step may take a moment to end
}

}  // namespace hocket
