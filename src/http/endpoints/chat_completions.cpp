#include <nlohmann/json.hpp>

#include "base/random_id.h"
#include "http/chat_request.h"
#include "http/endpoints/endpoints.h"
#include "http/error_reply.h"
#include "http/reply_sender.h"

namespace hocket {
namespace {

Result<HttpResponse> answer(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(const Json body, parse_body(request, api));
  TRY_ASSIGN(const auto service, service_for(body, request, api));
  TRY_ASSIGN(ParsedChat parsed, read_chat_request(body, request, *service, api.options));
  const bool logprobs = parsed.request.params.logprobs;
  TRY_ASSIGN(auto reply, service->chat(std::move(parsed.request)));
  const ServiceInfo& info = service->info();
  ReplyIdentity identity{"chatcmpl-" + random_id(), reply->request_id(), reply->created(), info.model_id,
                         info.fingerprint,          parsed.style};
  return send_reply(std::move(reply), make_chat_shape(std::move(identity), logprobs), *request.link, api);
}

}  // namespace

HttpResponse post_chat_completions(const HttpRequest& request, const Api& api) {
  return respond(answer(request, api));
}

}  // namespace hocket
