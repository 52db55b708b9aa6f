#include "http/chat_request.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "http/chat_messages.h"
#include "http/sampling_fields.h"

namespace hocket {
namespace {

void read_style(FieldReader& fields, ReplyStyle& style) {
  style.stream = fields.boolean("stream").value_or(false);
  style.progress = fields.boolean("hocket_progress").value_or(false);
  if (const Json* options = fields.object("stream_options")) {
    FieldReader inner(*options, "stream_options");
    style.include_usage = inner.boolean("include_usage").value_or(false);
    inner.boolean("include_obfuscation");
    if (auto checked = inner.check(); !checked) fields.fail(checked.error());
  }
}

// Without room for one token there is nothing to answer; a limit beyond any context is the context's end.
std::optional<int64_t> read_token_limit(FieldReader& fields, std::string_view name) {
  return fields.integer(name, 1, INT32_MAX, true);
}

// What is taken from earlier requests, and how the client keeps up with this one.
ServingParams read_serving(FieldReader& fields, const ReplyStyle& style) {
  ServingParams serving;
  if (const auto id = fields.string("session_id", 256)) {
    if (id->empty()) fields.fail("session_id", "session_id is empty");
    serving.session_id = *id;
  }
  serving.cache_prompt = fields.boolean("cache_prompt").value_or(true);
  serving.reuse_generated_state = fields.boolean("reuse_generated_state").value_or(false);
  const bool ack = fields.one_of("flow_control", {"none", "ack"}) == "ack";
  const auto window = fields.small_integer("flow_window", 1, 4096);
  if (ack && !style.stream) fields.fail("flow_control", "flow_control \"ack\" needs stream: true");
  if (window && !ack) fields.fail("flow_window", "flow_window needs flow_control \"ack\"");
  if (ack) serving.flow_window = static_cast<std::size_t>(window.value_or(1));
  return serving;
}

void read_modalities(FieldReader& fields) {
  const Json* modalities = fields.array("modalities", 8);
  for (std::size_t i = 0; modalities && i < modalities->size(); ++i)
    if ((*modalities)[i] != "text") fields.fail("modalities", "this model writes text only", ErrorCode::kUnsupported);
  if (fields.has("audio")) fields.fail("audio", "this model writes text only", ErrorCode::kUnsupported);
}

void read_chat_logprobs(FieldReader& fields, const HttpLimits& limits, GenerationParams& params) {
  params.logprobs = fields.boolean("logprobs").value_or(false);
  const auto top = fields.small_integer("top_logprobs", 0, limits.max_top_logprobs);
  if (top && !params.logprobs) fields.fail("top_logprobs", "top_logprobs needs logprobs: true");
  params.top_logprobs = top.value_or(0);
}

// enable_thinking, reasoning_effort and chat_template_kwargs all reach the template; the most specific wins.
void read_template_fields(FieldReader& fields, ChatRequest& chat) {
  Json variables = Json::object();
  chat.enable_thinking = fields.boolean("enable_thinking").value_or(true);
  if (const auto effort =
          fields.one_of("reasoning_effort", {"none", "minimal", "low", "medium", "high", "xhigh", "max"})) {
    variables["reasoning_effort"] = *effort;
    if (effort == "none") chat.enable_thinking = false;
  }
  if (const Json* kwargs = fields.object("chat_template_kwargs")) {
    if (const auto it = kwargs->find("enable_thinking"); it != kwargs->end() && !it->is_null()) {
      if (it->is_boolean())
        chat.enable_thinking = it->get<bool>();
      else
        fields.fail("chat_template_kwargs.enable_thinking",
                    fmt::format("chat_template_kwargs.enable_thinking must be a boolean, not {}", json_kind(*it)));
    }
    for (const auto& [name, value] : kwargs->items())
      if (!value.is_null()) variables[name] = value;
  }
  if (!variables.empty()) chat.template_kwargs_json = dump_json(variables);
}

// An assistant's text at the end is the beginning of the answer, unless the client wants a new turn.
void read_continuation(FieldReader& fields, ChatRequest& chat) {
  const bool can_continue = !chat.messages.empty() && chat.messages.back().role == "assistant" &&
                            chat.messages.back().tool_calls.empty() && chat.messages.back().content.value_or("") != "";
  const auto wish = fields.boolean("continue_final_message");
  const auto prompt = fields.boolean("add_generation_prompt");
  if (wish == true && !can_continue)
    fields.fail("continue_final_message", "continue_final_message needs an assistant's text as the last message");
  if (wish == true && prompt == true)
    fields.fail("add_generation_prompt", "add_generation_prompt and continue_final_message exclude each other");
  chat.continue_final_message = wish.value_or(can_continue && prompt != true);
  if (prompt == false && !chat.continue_final_message)
    fields.fail("add_generation_prompt", "add_generation_prompt: false leaves nobody to answer",
                ErrorCode::kUnsupported);
}

}  // namespace

Result<ParsedChat> read_chat_request(const Json& body, const HttpRequest& request, const ChatService& service,
                                     const ServerOptions& options) {
  const HttpLimits& limits = options.limits;
  FieldReader fields(body, "");
  ParsedChat parsed;
  ChatRequest& chat = parsed.request;
  chat.request_id = request.request_id;
  chat.user = read_user(fields);
  chat.messages = read_messages(fields, limits);
  ToolFields tools = read_tools(fields, limits);
  chat.tools = std::move(tools.tools);
  chat.tool_choice = std::move(tools.choice);
  // Forced to call, a small model goes on calling as long as it may; who wants several calls then says so.
  const bool by_itself = chat.tool_choice.kind != ToolChoiceKind::kRequired;
  chat.parallel_tool_calls = fields.boolean("parallel_tool_calls").value_or(by_itself);
  chat.response_format = read_response_format(fields, limits);
  read_template_fields(fields, chat);
  read_continuation(fields, chat);

  const auto newer = read_token_limit(fields, "max_completion_tokens");
  const auto older = read_token_limit(fields, "max_tokens");
  chat.params.max_tokens = newer ? newer : older;
  read_sampling(fields, limits, service.info().model.n_vocab, chat.params);
  read_chat_logprobs(fields, limits, chat.params);
  read_style(fields, parsed.style);
  parsed.style.max_tokens = chat.params.max_tokens;
  chat.serving = read_serving(fields, parsed.style);
  read_modalities(fields);
  fields.ignore({"model", "service_tier", "store", "metadata", "verbosity", "prediction", "web_search_options",
                 "prompt_cache_retention", "moderation", "timings_per_token", "reasoning_format"});
  TRY(finish_fields(fields, request, options));
  return parsed;
}

Result<ParsedCompletion> read_completion_request(const Json& body, const HttpRequest& request,
                                                 const ChatService& service, const ServerOptions& options) {
  const HttpLimits& limits = options.limits;
  FieldReader fields(body, "");
  ParsedCompletion parsed;
  CompletionRequest& completion = parsed.request;
  completion.request_id = request.request_id;
  completion.user = read_user(fields);
  completion.prompts = read_prompts(fields, "prompt", limits.max_inputs, service.info().model.n_vocab, true);
  completion.echo = fields.boolean("echo").value_or(false);
  completion.suffix = fields.string("suffix", SIZE_MAX).value_or("");
  completion.response_format = read_response_format(fields, limits);
  completion.params.max_tokens = read_token_limit(fields, "max_tokens");
  read_sampling(fields, limits, service.info().model.n_vocab, completion.params);
  // The number of alternatives; 0 asks for the chosen tokens alone.
  if (const auto top = fields.small_integer("logprobs", 0, limits.max_top_logprobs)) {
    completion.params.logprobs = true;
    completion.params.top_logprobs = *top;
  }
  if (const auto best_of = fields.small_integer("best_of", 1, limits.max_n); best_of && *best_of != completion.params.n)
    fields.fail("best_of", "best_of other than n is not supported", ErrorCode::kUnsupported);
  read_style(fields, parsed.style);
  parsed.style.max_tokens = completion.params.max_tokens;
  completion.serving = read_serving(fields, parsed.style);
  fields.ignore({"model", "store", "metadata", "timings_per_token"});
  TRY(finish_fields(fields, request, options));
  return parsed;
}

}  // namespace hocket
