#include "http/request_body.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/log.h"

namespace hocket {
namespace {

constexpr std::size_t kMostModelBytes = 256;

Result<std::shared_ptr<ChatService>> use(const std::string& model, const HttpRequest& request, const Api& api) {
  DisconnectWatch watch(*request.link);
  const auto gone = [&] { return watch.gone(); };
  auto service = api.host.use(model, gone);
  if (!service && service.error().reason == "model_not_found" && api.options.any_model) {
    if (auto first = api.host.use("", gone)) return first;
  }
  return service;
}

}  // namespace

Result<Json> parse_body(const HttpRequest& request, const Api& api) {
  if (request.body.empty()) return Error(ErrorCode::kInvalid, "the request has no body; a JSON object is expected");
  return parse_json(request.body, api.options.limits.json);
}

Result<std::shared_ptr<ChatService>> service_for(const Json& body, const HttpRequest& request, const Api& api,
                                                 bool required) {
  FieldReader fields(body, "");
  const auto model = fields.string("model", kMostModelBytes);
  TRY(fields.check());
  if (!model && required && !api.options.any_model) return no_such_model("", ids_of(api.host.models()));
  return use(model.value_or(""), request, api);
}

Result<std::shared_ptr<ChatService>> service_of_query(const HttpRequest& request, const Api& api) {
  const std::string* const model = request.query_value("model");
  return use(model ? *model : std::string(), request, api);
}

Result<ModelStatus> model_of_query(const HttpRequest& request, const Api& api) {
  std::vector<ModelStatus> models = api.host.models();
  const std::string* const name = request.query_value("model");
  if (!name && !models.empty()) return std::move(models.front());
  ModelStatus* const model = name ? find_called(models, *name) : nullptr;
  if (!model) return no_such_model(name ? *name : std::string(), ids_of(models));
  return std::move(*model);
}

Result<void> finish_fields(const FieldReader& fields, const HttpRequest& request, const ServerOptions& options) {
  TRY(fields.check());
  const std::vector<std::string> unknown = fields.unknown();
  if (unknown.empty()) return {};
  if (options.strict_fields || request.header("X-Hocket-Strict") == "true")
    return Error(ErrorCode::kInvalid, fmt::format("there is no field \"{}\"", unknown.front()), unknown.front());
  log_debug("{}: fields ignored: {}", request.request_id, fmt::join(unknown, ", "));
  return {};
}

}  // namespace hocket
