// http/sse.h: server-sent events.
//
// Threads  pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "http/exchange.h"

namespace hocket {

inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
inline constexpr std::string_view kSsePing = ": ping\n\n";

std::string sse_event(const Json& value);

// The head of a stream: sent before the first event exists.
HttpResponse sse_response(std::function<void(ClientLink&)> stream);

}  // namespace hocket
