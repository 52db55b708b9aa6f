#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "http/endpoints/endpoints.h"
#include "http/error_reply.h"

namespace hocket {
namespace {

std::string_view phase_name(RequestPhase phase) {
  switch (phase) {
    case RequestPhase::kQueued:
      return "queued";
    case RequestPhase::kPrefill:
      return "prefill";
    case RequestPhase::kDecode:
      return "decode";
  }
  return "";
}

Result<HttpResponse> cancel(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(const auto service, api.host.service());
  TRY_ASSIGN(const Json body, parse_body(request, api));
  FieldReader fields(body, "");
  const auto id = fields.string("request_id", 256);
  // An empty id must never mean "whatever runs".
  if (!id || id->empty()) fields.fail("request_id", id ? "request_id is empty" : "request_id is missing");
  for (const std::string& name : fields.unknown()) fields.fail(name, fmt::format("there is no field \"{}\"", name));
  TRY(fields.check());
  if (auto cancelled = service->cancel(*id); !cancelled) {
    Error error = cancelled.error();
    error.param = "request_id";
    if (error.code == ErrorCode::kNotFound) error.reason = "request_not_found";
    return error;
  }
  HttpResponse response;
  response.body = dump_json(Json::object({{"request_id", *id}, {"cancelled", true}}));
  return response;
}

}  // namespace

HttpResponse post_cancel(const HttpRequest& request, const Api& api) {
  auto response = cancel(request, api);
  return response ? std::move(*response) : error_response(response.error());
}

HttpResponse get_generation_status(const HttpRequest& request, const Api& api) {
  const auto service = api.host.service();
  if (!service) return error_response(service.error());
  std::size_t n_queued = 0;
  Json list = Json::array();
  for (const RequestStatus& status : (*service)->status()) {
    n_queued += status.phase == RequestPhase::kQueued;
    Json entry = Json::object();
    entry["id"] = status.request_id;
    entry["phase"] = std::string(phase_name(status.phase));
    entry["prompt_tokens_done"] = status.prompt_tokens;
    entry["prompt_tokens"] = status.prompt_total;
    entry["completion_tokens"] = status.completion_tokens;
    entry["draft_n"] = status.drafted_tokens;
    entry["draft_n_accepted"] = status.accepted_tokens;
    entry["age_ms"] = status.age_ms;
    list.push_back(std::move(entry));
  }
  Json json = Json::object();
  json["n_running"] = list.size() - n_queued;
  json["n_queued"] = n_queued;
  json["requests"] = std::move(list);
  HttpResponse response;
  response.body = dump_json(json);
  return response;
}

}  // namespace hocket
