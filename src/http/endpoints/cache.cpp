#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "http/endpoints/endpoints.h"
#include "http/error_reply.h"
#include "http/service_json.h"

namespace hocket {
namespace {

Result<HttpResponse> clear(const HttpRequest& request, const Api& api) {
  TRY_ASSIGN(const auto service, api.host.service());
  TRY_ASSIGN(const Json body, parse_body(request, api));
  FieldReader fields(body, "");
  for (const std::string& name : fields.unknown()) fields.fail(name, fmt::format("there is no field \"{}\"", name));
  TRY(fields.check());
  TRY(service->clear_cache());
  HttpResponse response;
  response.body = dump_json(Json::object({{"cleared", true}}));
  return response;
}

}  // namespace

HttpResponse post_cache_clear(const HttpRequest& request, const Api& api) {
  auto response = clear(request, api);
  return response ? std::move(*response) : error_response(response.error());
}

HttpResponse get_cache_status(const HttpRequest& request, const Api& api) {
  const auto service = api.host.service();
  if (!service) return error_response(service.error());
  const CacheReport report = (*service)->cache();
  const PrefixCacheStats& prefixes = report.prefixes;
  Json found = Json::object();
  for (std::size_t i = 0; i < kCacheStatuses; ++i)
    found[std::string(cache_status_name(static_cast<CacheStatus>(i)))] = prefixes.n_found[i];
  Json json = Json::object();
  json["entries"] = prefixes.n_entries;
  json["users"] = prefixes.n_tenants;
  json["tokens"] = prefixes.n_tokens;
  json["budget_tokens"] = prefixes.most_tokens;
  json["resident_bytes"] = report.resident_bytes;
  json["evictions"] = prefixes.n_evicted;
  json["cached_tokens"] = prefixes.n_tokens_found;
  json["prompts"] = std::move(found);
  json["persistent"] = false;
  HttpResponse response;
  response.body = dump_json(json);
  return response;
}

}  // namespace hocket
