#include <fmt/format.h>

#include <functional>
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
    case RequestPhase::kPaused:
      return "paused";
  }
  return "";
}

Json status_json(const RequestStatus& status, const std::string& model) {
  Json entry = Json::object();
  entry["id"] = status.request_id;
  entry["model"] = model;
  entry["phase"] = std::string(phase_name(status.phase));
  entry["prompt_tokens_done"] = status.prompt_tokens;
  entry["prompt_tokens"] = status.prompt_total;
  entry["completion_tokens"] = status.completion_tokens;
  entry["draft_n"] = status.drafted_tokens;
  entry["draft_n_accepted"] = status.accepted_tokens;
  entry["sequence"] = status.sequence;
  entry["steps"] = status.steps;
  entry["age_ms"] = status.age_ms;
  return entry;
}

// What the calls of this file share: a body with the id of a request, and perhaps a number.
struct Named {
  std::string id;
  uint64_t sequence = 0;
};
Result<Named> read_named(const HttpRequest& request, const Api& api, bool with_sequence) {
  TRY_ASSIGN(const Json body, parse_body(request, api));
  FieldReader fields(body, "");
  Named named;
  const auto id = fields.string("request_id", 256);
  // An empty id must never mean "whatever runs".
  if (!id || id->empty()) fields.fail("request_id", id ? "request_id is empty" : "request_id is missing");
  named.id = id.value_or("");
  if (with_sequence) {
    const auto sequence = fields.integer("sequence", 0, INT64_MAX);
    if (!sequence) fields.fail("sequence", "sequence is missing");
    named.sequence = static_cast<uint64_t>(sequence.value_or(0));
  }
  for (const std::string& name : fields.unknown()) fields.fail(name, fmt::format("there is no field \"{}\"", name));
  TRY(fields.check());
  return named;
}

// {"request_id": …, DONE: true}
HttpResponse control(const HttpRequest& request, const Api& api, bool with_sequence, const char* done,
                     const std::function<Result<void>(ChatService&, const Named&)>& act) {
  const auto answer = [&]() -> Result<HttpResponse> {
    TRY_ASSIGN(const Named named, read_named(request, api, with_sequence));
    // Whichever model it runs on.
    Result<void> acted = Error(ErrorCode::kNotFound, fmt::format("no request \"{}\" is running or queued", named.id));
    for (const auto& service : api.host.loaded()) {
      acted = act(*service, named);
      if (acted || acted.error().code != ErrorCode::kNotFound) break;
    }
    if (!acted) {
      Error error = acted.error();
      if (error.param.empty()) error.param = "request_id";
      if (error.code == ErrorCode::kNotFound) error.reason = "request_not_found";
      return error;
    }
    HttpResponse response;
    response.body = dump_json(Json::object({{"request_id", named.id}, {done, true}}));
    return response;
  };
  return respond(answer());
}

}  // namespace

HttpResponse post_cancel(const HttpRequest& request, const Api& api) {
  return control(request, api, false, "cancelled",
                 [](ChatService& service, const Named& named) { return service.cancel(named.id); });
}

HttpResponse post_flow_ack(const HttpRequest& request, const Api& api) {
  return control(request, api, true, "acknowledged", [](ChatService& service, const Named& named) {
    return service.acknowledge(named.id, named.sequence);
  });
}

HttpResponse post_pause(const HttpRequest& request, const Api& api) {
  return control(request, api, false, "paused",
                 [](ChatService& service, const Named& named) { return service.pause(named.id); });
}

HttpResponse post_resume(const HttpRequest& request, const Api& api) {
  return control(request, api, false, "resumed",
                 [](ChatService& service, const Named& named) { return service.resume(named.id); });
}

HttpResponse get_generation_status(const HttpRequest& request, const Api& api) {
  std::size_t n_queued = 0;
  Json list = Json::array();
  for (const auto& service : api.host.loaded()) {
    for (const RequestStatus& status : service->status()) {
      n_queued += status.phase == RequestPhase::kQueued;
      list.push_back(status_json(status, service->info().model_id));
    }
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
