#include <fmt/format.h>

#include "http/endpoints/endpoints.h"
#include "http/error_reply.h"

namespace hocket {
namespace {

HttpResponse ok() {
  HttpResponse response;
  response.body = R"({"status":"ok"})";
  return response;
}

}  // namespace

HttpResponse get_welcome(const HttpRequest& request, const Api& api) {
  HttpResponse response;
  response.content_type = "text/plain; charset=utf-8";
  response.body =
      "This is a hocket server. It speaks the OpenAI API:\n"
      "  GET  /v1/models\n"
      "  POST /v1/chat/completions\n"
      "  GET  /health\n";
  return response;
}

HttpResponse get_livez(const HttpRequest& request, const Api& api) {
  return ok();
}

HttpResponse get_health(const HttpRequest& request, const Api& api) {
  switch (api.host.state()) {
    case ModelHost::State::kReady:
      return ok();
    case ModelHost::State::kLoading:
      return protocol_error(503, fmt::format("the model is loading ({:.0f} %)", 100 * api.host.progress()), "loading");
    case ModelHost::State::kFailed:
      break;
  }
  const std::optional<Error> fault = api.host.fault();
  return protocol_error(503, fault ? fault->message : "the model could not be loaded", "load_failed");
}

}  // namespace hocket
