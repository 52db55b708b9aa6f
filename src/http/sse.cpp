#include "http/sse.h"

namespace hocket {

std::string sse_event(const Json& value) {
  return "data: " + dump_json(value) + "\n\n";
}

HttpResponse sse_response(std::function<void(ClientLink&)> stream) {
  HttpResponse response;
  response.content_type = "text/event-stream; charset=utf-8";
  response.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  response.stream = std::move(stream);
  return response;
}

}  // namespace hocket
