// http/chat_request.h: JSON bodies of the chat and completion APIs → engine requests.
//
// Threads  pure functions.
// Errors   kInvalid or kUnsupported with the field in `param`.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "engine/chat_service.h"
#include "engine/requests.h"
#include "http/request_body.h"

namespace hocket {

// How the reply is to be sent.
struct ReplyStyle {
  bool stream = false;
  bool include_usage = false;
  bool progress = false;  // events while the prompt is evaluated
  std::optional<int64_t> max_tokens;
};

struct ParsedChat {
  ChatRequest request;
  ReplyStyle style;
};
// `service` is the one that the body names.
Result<ParsedChat> read_chat_request(const Json& body, const HttpRequest& request, const ChatService& service,
                                     const ServerOptions& options);

struct ParsedCompletion {
  CompletionRequest request;
  ReplyStyle style;
};
Result<ParsedCompletion> read_completion_request(const Json& body, const HttpRequest& request,
                                                 const ChatService& service, const ServerOptions& options);

// A string, an array of strings, an array of ids or an array of arrays of ids. Faults stay in `fields`; `allow_empty`
// accepts empty strings and arrays of ids.
std::vector<Prompt> read_prompts(FieldReader& fields, std::string_view name, std::size_t max_prompts,
                                 std::size_t n_vocab, bool allow_empty);

}  // namespace hocket
