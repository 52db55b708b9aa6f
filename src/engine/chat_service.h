// engine/chat_service.h: a loaded language model that answers requests: the product without HTTP.
//
// Requests are checked completely when they are submitted (template rendered, tokens counted, grammar compiled),
// queued, and generated side by side, in lanes, by one thread of the service. A Reply is the client's end: it pulls
// events at its own pace, so a slow reader holds up nobody.
//
// Owns     model, tokenizer, runner, the generation thread.
// Threads  every method from any thread.
// Errors   submit: kInvalid naming the request field; a prompt that is too long has reason "context_length_exceeded"
// and
//          the numbers n_prompt_tokens and n_ctx; kBusy when the queue is full (reason "queue_full") or the service
//          drains (reason "draining").
// Cost     what controls requests and tells about them never waits for generation; clear_cache() waits for a step.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "engine/requests.h"
#include "engine/service_metrics.h"
#include "lm/language_model.h"
#include "runtime/sessions/session_store.h"

namespace hocket {

// What proposes tokens that the model then verifies several at a time (docs/speculative.md).
struct DraftOptions {
  // kNextnIfPresent: the model's NextN block where its file has one, else none.
  enum class Kind { kNone, kLookup, kModel, kNextn, kNextnIfPresent };
  Kind kind = Kind::kNone;
  std::string model_path;            // kModel; kNextn: a file with the block, empty: the model's own
  std::optional<std::size_t> n_max;  // most tokens of a draft; absent: what suits the kind
  std::size_t n_min = 0;             // at least so many are asked for, whether drafting seems to pay or not
  float p_min = 0.75f;               // a model's draft ends before a token that it thinks less probable
};

struct SessionOptions {
  std::string folder;  // sessions that outlive the process are there; "": none do
  std::size_t most_ram_bytes = std::size_t{1} << 30;
  std::size_t most_disk_bytes = std::size_t{8} << 30;
};

struct ServiceOptions {
  std::string model_path;
  std::vector<std::string> aliases;  // the first is the id clients see; empty: the file's name without .gguf
  bool use_mmap = true;
  bool use_mlock = false;
  LoadOptions load;      // device, repack, progress
  RunnerOptions runner;  // n_ctx 0: the model's trained length, at most 8192; n_cells 0: for as many lanes at their
                         // longest as there are, at most 4; n_seqs is set by the service
  std::size_t n_parallel = 0;  // requests that run at a time; 0: 8
  std::size_t n_chunk = 128;   // tokens that a prompt is evaluated in at a time
  std::string chat_template;   // Jinja source that replaces the file's; "" = the file's
  std::string pooling;         // "", "mean", "last", "cls"
  GenerationParams defaults;   // server flags for sampling
  DraftOptions drafts;
  SessionOptions sessions;
  std::size_t max_queue = 64;
  double queue_timeout_ms = 600'000;
  double request_timeout_ms = 3'600'000;
  double flow_timeout_ms = 120'000;  // for a client to acknowledge what it was sent
  int max_n = 8;
};

// Requests that run at a time.
std::size_t resolve_lanes(const ServiceOptions& options);

// What load() would take, from the header of the file alone.
struct ServicePlan {
  std::size_t n_ctx = 0;
  std::size_t n_lanes = 1;
  std::size_t n_cells = 0;
  std::size_t n_ctx_train = 0;  // 0: the file does not say
  MemoryPlan memory;
  MemoryPlan draft_memory;  // of a draft model
};
Result<ServicePlan> plan_service(const ServiceOptions& options);
// The same at each of these context sizes.
Result<std::vector<ServicePlan>> plan_contexts(const ServiceOptions& options, const std::vector<std::size_t>& sizes);

struct ServiceInfo {
  std::string model_id;
  std::vector<std::string> aliases;
  std::string model_path;
  ModelSummary model;
  std::size_t n_ctx = 0;
  std::size_t n_lanes = 1;
  std::size_t n_cells = 0;
  MemoryPlan memory;
  DraftOptions drafts;
  MemoryPlan draft_memory;
  std::string chat_template;
  std::string bos_text, eos_text;
  std::string fingerprint;  // build and weights: "fp_…"
  int64_t created = 0;      // Unix seconds of the load
  bool thinking = false, tools = false;
  SamplingParams default_sampling;
};

struct CacheReport {
  PrefixCacheStats prefixes;
  std::size_t resident_bytes = 0;  // of them, in the memory of the model
};

class Reply {
 public:
  virtual ~Reply() = default;  // cancels when the reply has not ended
  virtual const std::string& request_id() const = 0;
  virtual int64_t created() const = 0;
  // The next event; nullopt when `wait` passed without one. After ReplyDone or an Error nothing follows.
  virtual Result<std::optional<ReplyEvent>> next(std::chrono::milliseconds wait) = 0;
  virtual void cancel() = 0;
};

class ChatService {
 public:
  static Result<std::shared_ptr<ChatService>> load(const ServiceOptions& options);
  virtual ~ChatService() = default;  // cancels what runs

  virtual const ServiceInfo& info() const = 0;

  virtual Result<std::unique_ptr<Reply>> chat(ChatRequest request) = 0;
  virtual Result<std::unique_ptr<Reply>> complete(CompletionRequest request) = 0;
  virtual Result<EmbeddingResult> embed(EmbeddingRequest request, CancelToken cancel) = 0;

  virtual Result<std::vector<TokenId>> tokenize(std::string_view text, const EncodeOptions& options) = 0;
  virtual Result<std::string> detokenize(const std::vector<TokenId>& ids) = 0;
  virtual std::string token_bytes(TokenId id) const = 0;
  virtual Result<std::string> apply_template(const ChatRequest& request) = 0;

  virtual Result<void> cancel(std::string_view request_id) = 0;  // kNotFound for an id that is not running or queued
  // kNotFound as cancel(). The chunks up to `sequence` have arrived: kInvalid when there are not so many.
  virtual Result<void> acknowledge(std::string_view request_id, uint64_t sequence) = 0;
  // Holds a request between two steps, and lets it go on. Its lane stays its own.
  virtual Result<void> pause(std::string_view request_id) = 0;
  virtual Result<void> resume(std::string_view request_id) = 0;
  // What is kept of earlier prompts.
  virtual CacheReport cache() const = 0;
  virtual Result<void> clear_cache() = 0;
  // Conversations that clients have named. It lives as long as the service.
  virtual SessionStore& sessions() = 0;
  virtual std::vector<RequestStatus> status() const = 0;
  virtual ServiceMetrics metrics() const = 0;
  // Refuses new requests (kBusy), waits for running ones and for sessions that are being saved up to `limit`, then
  // cancels the rest.
  virtual void drain(std::chrono::milliseconds limit) = 0;
};

}  // namespace hocket
