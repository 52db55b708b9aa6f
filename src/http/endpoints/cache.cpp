#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "http/endpoints/endpoints.h"
#include "http/error_reply.h"
#include "http/service_json.h"

namespace hocket {
namespace {

constexpr std::size_t kMostIdBytes = 256;

// "" where it is absent.
std::string read_id(FieldReader& fields, std::string_view name, bool required) {
  const auto id = fields.string(name, kMostIdBytes);
  if (id ? id->empty() : required) fields.fail(name, fmt::format("{} is {}", name, id ? "empty" : "missing"));
  return id.value_or("");
}

Result<void> finish(FieldReader& fields) {
  for (const std::string& name : fields.unknown()) fields.fail(name, fmt::format("there is no field \"{}\"", name));
  return fields.check();
}

Result<HttpResponse> clear(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(const Json body, parse_body(request, api));
  FieldReader fields(body, "");
  const auto user = fields.string("user", kMostIdBytes);
  const std::string id = read_id(fields, "session_id", false);
  if (user && id.empty()) fields.fail("session_id", "user needs the session_id that is to be forgotten");
  fields.ignore({"model"});
  TRY(finish(fields));
  TRY_ASSIGN(const auto service, service_for(body, request, api, false));
  Json json = Json::object({{"cleared", true}});
  if (id.empty()) {
    TRY(service->clear_cache());
    TRY_ASSIGN(const std::size_t n, service->sessions().drop_all());
    json["sessions"] = n;
  } else {
    TRY(service->sessions().drop({user.value_or(""), id}));
    json["sessions"] = 1;
  }
  HttpResponse response;
  response.body = dump_json(json);
  return response;
}

Result<HttpResponse> fork(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(const Json body, parse_body(request, api));
  FieldReader fields(body, "");
  const std::string user = fields.string("user", kMostIdBytes).value_or("");
  const std::string source = read_id(fields, "source_session_id", true);
  const std::string target = read_id(fields, "target_session_id", true);
  fields.ignore({"model"});
  TRY(finish(fields));
  TRY_ASSIGN(const auto service, service_for(body, request, api, false));
  TRY(service->sessions().fork(user, source, target));
  HttpResponse response;
  response.body =
      dump_json(Json::object({{"forked", true}, {"source_session_id", source}, {"target_session_id", target}}));
  return response;
}

Json sessions_json(const SessionStats& stats) {
  Json json = Json::object();
  json["sessions"] = stats.n_sessions;
  json["users"] = stats.n_tenants;
  json["snapshots"] = stats.n_states;
  json["ram_bytes"] = stats.ram_bytes;
  json["ram_budget_bytes"] = stats.most_ram_bytes;
  json["disk_bytes"] = stats.disk_bytes;
  json["disk_budget_bytes"] = stats.most_disk_bytes;
  json["saves_pending"] = stats.n_pending;
  json["saves"] = stats.n_saved;
  json["saves_skipped"] = stats.n_skipped;
  json["saves_failed"] = stats.n_failed;
  json["restores"] = stats.n_restored;
  json["refusals"] = stats.n_refused;
  json["forks"] = stats.n_forked;
  json["evictions"] = stats.n_evicted;
  return json;
}

Result<HttpResponse> status(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(const ModelStatus model, model_of_query(request, api));
  HttpResponse response;
  Json json = Json::object();
  json["model"] = model.id;
  json["loaded"] = model.service != nullptr;
  if (!model.service) {
    response.body = dump_json(json);
    return response;
  }
  const CacheReport report = model.service->cache();
  const PrefixCacheStats& prefixes = report.prefixes;
  Json found = Json::object();
  for (std::size_t i = 0; i < kCacheStatuses; ++i)
    found[std::string(cache_status_name(static_cast<CacheStatus>(i)))] = prefixes.n_found[i];
  json["entries"] = prefixes.n_entries;
  json["users"] = prefixes.n_tenants;
  json["tokens"] = prefixes.n_tokens;
  json["budget_tokens"] = prefixes.most_tokens;
  json["resident_bytes"] = report.resident_bytes;
  json["evictions"] = prefixes.n_evicted;
  json["cached_tokens"] = prefixes.n_tokens_found;
  json["prompts"] = std::move(found);
  const SessionStats sessions = model.service->sessions().stats();
  json["sessions"] = sessions_json(sessions);
  json["persistent"] = sessions.persistent;
  response.body = dump_json(json);
  return response;
}

}  // namespace

HttpResponse post_cache_clear(const HttpRequest& request, const Api& api) {
  return respond(clear(request, api));
}

HttpResponse post_cache_fork(const HttpRequest& request, const Api& api) {
  return respond(fork(request, api));
}

HttpResponse get_cache_status(const HttpRequest& request, const Api& api) {
  return respond(status(request, api));
}

}  // namespace hocket
