// engine/service.h: the ChatService that ChatService::load() makes, from parts that tests may replace.
//
// Owns     the parts, the queue, the generation thread.
// Threads  see chat_service.h.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/chat_service.h"
#include "engine/drafting.h"
#include "engine/embeddings.h"
#include "engine/flow_registry.h"
#include "engine/generation_job.h"
#include "engine/generation_loop.h"
#include "engine/prompt_builder.h"
#include "engine/request_queue.h"
#include "engine/sampling_defaults.h"
#include "tokenizer/grammar.h"

namespace hocket {

struct ServiceParts {
  std::shared_ptr<const GgufFile> file;  // kept for the model's sake; may be nullptr
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<LanguageModel> model;
  std::unique_ptr<LmRunner> runner;
  Result<std::unique_ptr<ChatTemplate>> chat_template;  // an error makes chat requests fail with it
  SamplingParams model_sampling;                        // what the file recommends
  std::string fingerprint;
  std::unique_ptr<Drafting> drafting = nullptr;      // nullptr: one token a step
  StateIdentity identity = {};                       // of saved sessions
  std::unique_ptr<SessionStore> sessions = nullptr;  // nullptr: make_service() opens what the options say
};

// The runner's options that the service will use.
RunnerOptions resolve_runner(const ServiceOptions& options, const ModelSummary& summary);
// Reads the parts from options.model_path.
Result<ServiceParts> load_parts(const ServiceOptions& options);
// Starts the generation thread.
Result<std::shared_ptr<ChatService>> make_service(ServiceParts parts, const ServiceOptions& options);

class LocalChatService final : public ChatService {
 public:
  // After make_service() has checked the options.
  LocalChatService(ServiceParts parts, const ServiceOptions& options, std::unique_ptr<GrammarCompiler> grammars,
                   Pooling pooling);
  ~LocalChatService() override;

  const ServiceInfo& info() const override { return info_; }
  Result<std::unique_ptr<Reply>> chat(ChatRequest request) override;
  Result<std::unique_ptr<Reply>> complete(CompletionRequest request) override;
  Result<EmbeddingResult> embed(EmbeddingRequest request, CancelToken cancel) override;
  Result<std::vector<TokenId>> tokenize(std::string_view text, const EncodeOptions& options) override;
  Result<std::string> detokenize(const std::vector<TokenId>& ids) override;
  std::string token_bytes(TokenId id) const override;
  Result<std::string> apply_template(const ChatRequest& request) override;
  Result<void> cancel(std::string_view request_id) override;
  Result<void> acknowledge(std::string_view request_id, uint64_t sequence) override;
  Result<void> pause(std::string_view request_id) override;
  Result<void> resume(std::string_view request_id) override;
  CacheReport cache() const override;
  Result<void> clear_cache() override;
  SessionStore& sessions() override { return *parts_.sessions; }
  std::vector<RequestStatus> status() const override { return queue_->status(); }
  ServiceMetrics metrics() const override;
  void drain(std::chrono::milliseconds limit) override;

 private:
  std::shared_ptr<JobControl> make_control(std::string id, const char* prefix) const;
  Result<GenerationPlan> make_plan(const GenerationParams& params, const ServingParams& serving) const;
  // Finds the session that the request names. After its only prompt is known.
  Result<void> open_session(const std::string& tenant, GenerationPlan& plan);
  Result<std::unique_ptr<Reply>> submit(std::shared_ptr<JobControl> control, GenerationPlan plan);
  Result<void> enqueue(const std::shared_ptr<JobControl>& control, std::shared_ptr<Job> job);

  // In this order: later members borrow earlier ones.
  ServiceParts parts_;
  const ServiceOptions options_;
  std::unique_ptr<GrammarCompiler> grammars_;
  const Pooling pooling_;
  const std::size_t n_ctx_;
  PromptBuilder prompts_;
  ServiceInfo info_;
  std::size_t bytes_per_token_ = 0, bytes_per_sequence_ = 0;  // of the model's memory
  LaneMemory lanes_;                                          // of the generation thread
  std::shared_ptr<MetricsRecorder> metrics_;
  std::shared_ptr<RequestQueue> queue_;
  FlowRegistry flows_;
  GenerationLoop loop_;
  std::thread thread_;
};

}  // namespace hocket
