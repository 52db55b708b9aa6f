#include "http/reply_shape.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "http/service_json.h"

namespace hocket {
namespace {

double per(double amount, double of) {
  return of > 0 ? amount / of : 0;
}

CollectedChoice& choice_at(std::vector<CollectedChoice>& choices, std::size_t i) {
  if (choices.size() <= i) choices.resize(i + 1);
  return choices[i];
}

ToolCall& call_at(CollectedChoice& choice, std::size_t i) {
  if (choice.tool_calls.size() <= i) choice.tool_calls.resize(i + 1);
  return choice.tool_calls[i];
}

Json timings_json(const ReplyDone& done) {
  const Timings& t = done.timings;
  const auto prompt_n = static_cast<double>(t.prefill_tokens), predicted_n = static_cast<double>(t.decode_tokens);
  Json json = Json::object();
  json["cache_n"] = done.usage.cached_tokens;
  json["prompt_n"] = t.prefill_tokens;
  json["prompt_ms"] = t.prefill_ms;
  json["prompt_per_token_ms"] = per(t.prefill_ms, prompt_n);
  json["prompt_per_second"] = per(1000 * prompt_n, t.prefill_ms);
  json["predicted_n"] = t.decode_tokens;
  json["predicted_ms"] = t.decode_ms;
  json["predicted_per_token_ms"] = per(t.decode_ms, predicted_n);
  json["predicted_per_second"] = per(1000 * predicted_n, t.decode_ms);
  if (t.drafted_tokens > 0) {
    json["draft_n"] = t.drafted_tokens;
    json["draft_n_accepted"] = t.accepted_tokens;
  }
  return json;
}

Json session_json(const ReplyDetails& details) {
  const SessionReport& report = *details.session;
  Json json = Json::object();
  json["id"] = report.id;
  json["stored"] = report.stored;
  if (!report.reason.empty()) json["reason"] = report.reason;
  json["bytes"] = report.n_bytes;
  json["save_ms"] = report.save_ms;
  json["restored"] = details.from_session;
  json["restore_ms"] = details.restore_ms;
  return json;
}

}  // namespace

void collect(const DeltaEvent& event, std::vector<CollectedChoice>& choices) {
  CollectedChoice& choice = choice_at(choices, event.choice);
  for (const ReplyDelta& delta : event.deltas) {
    switch (delta.kind) {
      case ReplyDelta::Kind::kContent:
        choice.content += delta.text;
        break;
      case ReplyDelta::Kind::kReasoning:
        choice.reasoning += delta.text;
        break;
      case ReplyDelta::Kind::kToolCallStart: {
        ToolCall& call = call_at(choice, delta.index);
        call.id = delta.call_id;
        call.name = delta.call_name;
        call.arguments += delta.text;
        break;
      }
      case ReplyDelta::Kind::kToolCallArguments:
        call_at(choice, delta.index).arguments += delta.text;
        break;
    }
  }
  choice.logprobs.insert(choice.logprobs.end(), event.logprobs.begin(), event.logprobs.end());
}

void collect(const ChoiceFinished& event, std::vector<CollectedChoice>& choices) {
  choice_at(choices, event.choice).reason = event.reason;
}

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kLength:
      return "length";
    case FinishReason::kToolCalls:
      return "tool_calls";
    default:
      return "stop";
  }
}

double finite_logprob(double logprob) {
  return logprob >= -9999.0 ? logprob : -9999.0;
}  // JSON has no infinity

Json chat_logprob_json(const TokenLogprobs& token) {
  const auto one = [](const TopToken& t) {
    Json json = Json::object();
    json["token"] = t.bytes;
    json["logprob"] = finite_logprob(t.logprob);
    Json bytes = Json::array();
    for (const char c : t.bytes) bytes.push_back(static_cast<unsigned char>(c));
    json["bytes"] = std::move(bytes);
    return json;
  };
  Json json = one(token.token);
  Json top = Json::array();
  for (const TopToken& t : token.top) top.push_back(one(t));
  json["top_logprobs"] = std::move(top);
  return json;
}

Json usage_json(const Usage& usage) {
  Json json = Json::object();
  json["prompt_tokens"] = usage.prompt_tokens;
  json["completion_tokens"] = usage.completion_tokens;
  json["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  json["prompt_tokens_details"] = Json::object({{"cached_tokens", usage.cached_tokens}});
  json["completion_tokens_details"] = Json::object({{"reasoning_tokens", usage.reasoning_tokens}});
  return json;
}

Json ReplyShape::head(std::string_view object) const {
  Json json = Json::object();
  json["id"] = identity_.id;
  json["object"] = std::string(object);
  json["created"] = identity_.created;
  json["model"] = identity_.model;
  json["system_fingerprint"] = identity_.fingerprint;
  return json;
}

Json ReplyShape::chunk(Json choice) const {
  Json json = head(chunk_object());
  json["choices"] = Json::array();
  json["choices"].push_back(std::move(choice));
  if (identity_.style.include_usage) json["usage"] = nullptr;
  return json;
}

Json ReplyShape::usage(const Usage& usage) const {
  Json json = head(chunk_object());
  json["choices"] = Json::array();
  json["usage"] = usage_json(usage);
  return json;
}

Json ReplyShape::progress(const ProgressEvent& event) const {
  Json json = head(chunk_object());
  json["choices"] = Json::array();
  if (identity_.style.include_usage) json["usage"] = nullptr;
  json["hocket_progress"] = Json::object({{"prompt_tokens_done", event.n_done}, {"prompt_tokens", event.n_total}});
  return json;
}

std::vector<Json> ReplyShape::chunks(const DeltaEvent& event) {
  std::vector<Json> all = delta(event);
  if (event.sequence > 0)
    for (Json& one : all)
      one["hocket_flow"] = Json::object({{"request_id", identity_.request_id}, {"sequence", event.sequence}});
  return all;
}

void ReplyShape::add_numbers(Json& target, const ReplyDone& done, Json numbers) const {
  target["timings"] = timings_json(done);
  target["hocket"] = std::move(numbers);
}

Json ReplyShape::failure(const Error& error) const {
  Json own = Json::object();
  own["id"] = identity_.request_id;
  own["model"] = identity_.model;
  own["finish_reason"] = nullptr;
  own["error"] = std::string(error_code_name(error.code));
  if (!error.reason.empty()) own["error_reason"] = error.reason;
  return own;
}

Json ReplyShape::numbers(const ReplyDone& done, FinishReason reason) const {
  const Timings& t = done.timings;
  const ReplyDetails& details = *done.details;
  Json own = Json::object();
  own["id"] = identity_.request_id;
  own["model"] = identity_.model;
  own["finish_reason"] = std::string(finish_reason_name(reason));
  own["prompt_tokens"] = done.usage.prompt_tokens;
  own["completion_tokens"] = done.usage.completion_tokens;
  own["requested_max_tokens"] = identity_.style.max_tokens ? Json(*identity_.style.max_tokens) : Json(nullptr);
  own["effective_max_tokens"] = details.max_tokens;
  own["context_capacity_reached"] = details.context_full;
  own["queue_ms"] = t.queue_ms;
  own["ttft_ms"] = t.ttft_ms;
  own["prefill_ms"] = t.prefill_ms;
  own["prompt_evaluated_tokens"] = t.prefill_tokens;
  own["prefill_tokens_per_second"] = per(1000 * static_cast<double>(t.prefill_tokens), t.prefill_ms);
  own["decode_ms"] = t.decode_ms;
  own["decode_tokens_per_second"] = per(1000 * static_cast<double>(t.decode_tokens), t.decode_ms);
  own["decode_compute_ms"] = t.decode_compute_ms;
  own["decode_compute_tokens_per_second"] = per(1000 * static_cast<double>(t.decode_tokens), t.decode_compute_ms);
  own["draft_n"] = t.drafted_tokens;
  own["draft_n_accepted"] = t.accepted_tokens;
  own["total_ms"] = t.total_ms;
  own["cached_tokens"] = done.usage.cached_tokens;
  own["cache_status"] = std::string(cache_status_name(details.cache_status));
  if (!details.cache_status_reason.empty()) own["cache_status_reason"] = details.cache_status_reason;
  if (details.session) own["session"] = session_json(details);
  own["generated_cached_tokens"] = details.generated_cached_tokens;
  own["state_lineage"] = details.strict ? "strict" : "incremental";
  own["continuation_tokens"] = details.continuation_tokens;
  own["flow_waits"] = details.n_flow_waits;
  own["flow_wait_ms"] = details.flow_wait_ms;
  own["determinism"] = details.exact ? "exact" : "steps";
  own["sampling"] = sampling_json(details.sampling);
  own["rss_bytes"] = details.rss_bytes;
  own["peak_rss_bytes"] = details.peak_rss_bytes;
  own["minor_page_faults"] = details.minor_faults;
  own["major_page_faults"] = details.major_faults;
  return own;
}

}  // namespace hocket
