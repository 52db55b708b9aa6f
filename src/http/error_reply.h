// http/error_reply.h: the one table from errors to HTTP statuses, and the error body of the OpenAI API.
//
//   {"error":{"message":"…","type":"invalid_request_error","param":"temperature","code":null}}
//
// `code` is a string or null, never a number; an Error's `numbers` join the object under their own names.
//
// Threads  pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "http/exchange.h"

namespace hocket {

int http_status(const Error& error);

// {"error":{…}}: the body of a failed request, or the event of a stream that fails.
Json error_body(const Error& error);

// With Retry-After where waiting helps, and x-should-retry: false where a retry would be wrong.
HttpResponse error_response(const Error& error);
// The response, or that of its error.
HttpResponse respond(Result<HttpResponse> response);

// Errors of HTTP itself: 404, 405, 413, …; `code` "" is null.
HttpResponse protocol_error(int status, std::string_view message, std::string_view code, std::string_view param = {});
// 413 for a body of more than so many bytes.
HttpResponse body_too_large(std::size_t most);

}  // namespace hocket
