// engine/requests.h: what clients ask of the language service, and what they get, without any wire format.
//
// Threads  plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "chat/message.h"
#include "chat/reply_format.h"
#include "runtime/lanes/prefix_cache.h"
#include "runtime/sampling.h"

namespace hocket {

// Settings of one generation. An absent optional takes the model file's recommendation, else the server's default.
struct GenerationParams {
  std::optional<int64_t> max_tokens;  // absent: to the end of the context
  std::vector<std::string> stop;
  int n = 1;
  bool logprobs = false;
  int top_logprobs = 0;
  std::optional<int64_t> seed;
  std::optional<float> temperature, top_p, min_p, typical_p, top_n_sigma, presence_penalty, frequency_penalty,
      repeat_penalty, xtc_probability, xtc_threshold, dynatemp_range, dynatemp_exponent, dry_multiplier, dry_base,
      mirostat_tau, mirostat_eta;
  std::optional<int> top_k, repeat_last_n, dry_allowed_length, dry_penalty_last_n, mirostat, min_keep;
  std::optional<std::vector<std::string>> dry_sequence_breakers, samplers;
  bool ignore_eos = false;
  std::vector<LogitBias> logit_bias;
  std::string grammar;  // GBNF; "" = none
};

// What a request may take from earlier ones and leave for later ones, and how its client keeps up.
struct ServingParams {
  std::string session_id;              // names the conversation whose state lasts; "": none
  bool cache_prompt = true;            // false: nothing is taken, nothing is left
  bool reuse_generated_state = false;  // continue from any state, from that of answers too (docs/serving.md)
  std::size_t flow_window = 0;         // text chunks that may be sent beyond the last acknowledged one; 0: any number
};

struct ChatRequest {
  std::string request_id;  // "" = made by the service
  std::string user;        // cache tenant
  std::vector<Message> messages;
  std::vector<Tool> tools;
  ToolChoice tool_choice;
  bool parallel_tool_calls = true;
  ResponseFormat response_format;
  bool enable_thinking = true;
  bool continue_final_message = false;
  std::string template_kwargs_json;  // "" = none
  GenerationParams params;
  ServingParams serving;
};

using Prompt = std::variant<std::string, std::vector<TokenId>>;

struct CompletionRequest {
  std::string request_id;
  std::string user;
  std::vector<Prompt> prompts;  // each gives params.n choices
  bool echo = false;
  std::string suffix;  // fill-in-the-middle, when the vocabulary has the tokens; else kUnsupported
  ResponseFormat response_format;
  GenerationParams params;
  ServingParams serving;
};

struct EmbeddingRequest {
  std::string request_id;
  std::vector<Prompt> inputs;
  std::optional<int> dimensions;  // shorten and normalise again
};
struct EmbeddingResult {
  std::vector<std::vector<float>> vectors;  // unit length
  std::size_t n_prompt_tokens = 0;
};

struct TopToken {
  TokenId id;
  std::string bytes;  // not necessarily whole characters
  double logprob;
};
struct TokenLogprobs {
  TopToken token;
  std::vector<TopToken> top;
};

enum class FinishReason { kStop, kLength, kToolCalls };

struct Usage {
  std::size_t prompt_tokens = 0;
  std::size_t completion_tokens = 0;
  std::size_t reasoning_tokens = 0;
  std::size_t cached_tokens = 0;
};

// Milliseconds and rates of one request.
struct Timings {
  double queue_ms = 0, prefill_ms = 0, decode_ms = 0, ttft_ms = 0, total_ms = 0;
  double decode_compute_ms = 0;  // of decode_ms, without sampling and text
  std::size_t prefill_tokens = 0, decode_tokens = 0;
  std::size_t drafted_tokens = 0, accepted_tokens = 0;  // proposed; those of them that were generated
};

// What a reply is made of, in order. Every choice gets any number of deltas and one ChoiceFinished; the reply ends with
// ReplyDone or an Error.
struct DeltaEvent {
  std::size_t choice = 0;
  std::vector<ReplyDelta> deltas;       // may be empty when only logprobs come
  std::vector<TokenLogprobs> logprobs;  // of the tokens that these deltas come from; empty unless asked
  uint64_t sequence = 0;                // the number of this chunk where the client acknowledges chunks
};
struct ProgressEvent {  // during a long prefill
  std::size_t n_done = 0, n_total = 0;
};
struct ChoiceFinished {
  std::size_t choice = 0;
  FinishReason reason = FinishReason::kStop;
  std::string stop_string;  // the client's stop string that ended it, if one did
};
// What became of a request's session.
struct SessionReport {
  std::string id;
  std::string stored;       // "disk", "ram", "skipped"
  std::string reason;       // why it was skipped
  std::size_t n_bytes = 0;  // of its states
  double save_ms = 0;
};
// How a reply was made, apart from times.
struct ReplyDetails {
  std::size_t max_tokens = 0;  // that each choice could have had: as asked, or as the context had room
  bool context_full = false;   // a choice ended because the context did
  bool exact = false;          // the same tokens whatever else the server does and remembers
  CacheStatus cache_status = CacheStatus::kMiss;
  std::string cache_status_reason;          // why the session could not be used
  bool from_session = false;                // the prompt started from the session's state
  double restore_ms = 0;                    // for reading and restoring that
  std::optional<SessionReport> session;     // where the request named one
  std::size_t generated_cached_tokens = 0;  // of the cached ones: tokens of earlier answers
  bool strict = true;                       // the prompt's state is that of a cold run
  std::size_t continuation_tokens = 0;      // prompt and answer, kept for who allows reuse_generated_state; 0: not kept
  std::size_t n_flow_waits = 0;             // times that the client was waited for, pauses included
  double flow_wait_ms = 0;
  SamplingParams sampling;  // as used; `seed` is the real one
  // Of the whole process: memory at the end, page faults meanwhile.
  std::size_t rss_bytes = 0, peak_rss_bytes = 0;
  int64_t minor_faults = 0, major_faults = 0;
};
struct ReplyDone {
  Usage usage;
  Timings timings;
  // Elsewhere, because every event is as large as the largest; never nullptr.
  std::shared_ptr<const ReplyDetails> details = std::make_shared<ReplyDetails>();
};
using ReplyEvent = std::variant<ProgressEvent, DeltaEvent, ChoiceFinished, ReplyDone>;

enum class RequestPhase { kQueued, kPrefill, kDecode, kPaused };
struct RequestStatus {
  std::string request_id;
  RequestPhase phase = RequestPhase::kQueued;
  std::size_t prompt_tokens = 0;  // evaluated so far
  std::size_t prompt_total = 0;
  std::size_t completion_tokens = 0;
  std::size_t drafted_tokens = 0, accepted_tokens = 0;
  double age_ms = 0;
  uint64_t sequence = 0;  // text chunks so far, where the client acknowledges them
  std::size_t steps = 0;  // that the request took part in
};

}  // namespace hocket
