#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>

#include "http/endpoints/endpoints.h"
#include "http/error_reply.h"

namespace hocket {
namespace {

constexpr std::string_view kFolder = "/v1/sessions/";
constexpr std::string_view kState = "/state";
constexpr std::size_t kMostIdBytes = 256;

// `user` of the query; there may be `model` beside it.
Result<std::string> read_tenant(const HttpRequest& request) {
  std::string tenant;
  for (const auto& [name, value] : request.query) {
    if (name == "model") continue;
    if (name != "user") return Error(ErrorCode::kInvalid, fmt::format("there is no parameter \"{}\"", name), name);
    if (value.size() > kMostIdBytes)
      return Error(ErrorCode::kInvalid, fmt::format("user is longer than {} bytes", kMostIdBytes), "user");
    tenant = value;
  }
  return tenant;
}

Result<SessionName> read_name(const HttpRequest& request, std::string_view end) {
  TRY_ASSIGN(std::string tenant, read_tenant(request));
  std::string_view id = std::string_view(request.path).substr(kFolder.size());
  if (!id.ends_with(end) || id.size() == end.size()) {
    Error error(ErrorCode::kNotFound, fmt::format("there is no {}", request.path.substr(0, 200)));
    error.reason = "not_found";
    return error;
  }
  id.remove_suffix(end.size());
  if (id.size() > kMostIdBytes)
    return Error(ErrorCode::kInvalid, fmt::format("the session's id is longer than {} bytes", kMostIdBytes),
                 "session_id");
  return SessionName{std::move(tenant), std::string(id)};
}

Result<HttpResponse> list(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(const std::string tenant, read_tenant(request));
  TRY_ASSIGN(const auto service, service_of_query(request, api));
  Json list = Json::array();
  for (const SessionInfo& info : service->sessions().list(tenant)) {
    Json entry = Json::object();
    entry["id"] = info.id;
    entry["object"] = "session";
    entry["snapshots"] = info.n_states;
    entry["tokens"] = info.n_tokens;
    entry["bytes"] = info.n_bytes;
    entry["stored"] = info.on_disk ? "disk" : "ram";
    entry["in_ram"] = info.in_ram;
    entry["used"] = info.used_ms / 1000;
    entry["usable"] = info.reason.empty();
    if (!info.reason.empty()) entry["reason"] = info.reason;
    list.push_back(std::move(entry));
  }
  Json json = Json::object();
  json["object"] = "list";
  json["data"] = std::move(list);
  HttpResponse response;
  response.body = dump_json(json);
  return response;
}

Result<HttpResponse> drop(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(const SessionName name, read_name(request, ""));
  TRY_ASSIGN(const auto service, service_of_query(request, api));
  TRY(service->sessions().drop(name));
  HttpResponse response;
  response.body = dump_json(Json::object({{"id", name.id}, {"object", "session"}, {"deleted", true}}));
  return response;
}

Result<HttpResponse> export_state(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(const SessionName name, read_name(request, kState));
  TRY_ASSIGN(const auto service, service_of_query(request, api));
  TRY_ASSIGN(const std::vector<std::byte> bytes, service->sessions().export_session(name));
  HttpResponse response;
  response.content_type = "application/octet-stream";
  response.body.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return response;
}

Result<HttpResponse> import_state(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(const SessionName name, read_name(request, kState));
  TRY_ASSIGN(const auto service, service_of_query(request, api));
  TRY(service->sessions().import_session(name, std::as_bytes(std::span(request.body))));
  HttpResponse response;
  response.body = dump_json(Json::object({{"id", name.id}, {"object", "session"}, {"imported", true}}));
  return response;
}

}  // namespace

HttpResponse get_sessions(const HttpRequest& request, const Api& api) {
  return respond(list(request, api));
}

HttpResponse delete_session(const HttpRequest& request, const Api& api) {
  return respond(drop(request, api));
}

HttpResponse get_session_state(const HttpRequest& request, const Api& api) {
  return respond(export_state(request, api));
}

HttpResponse put_session_state(const HttpRequest& request, const Api& api) {
  return respond(import_state(request, api));
}

}  // namespace hocket
