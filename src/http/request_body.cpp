#include "http/request_body.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/log.h"

namespace hocket {

Result<Json> parse_body(const HttpRequest& request, const Api& api) {
  if (request.body.empty()) return Error(ErrorCode::kInvalid, "the request has no body; a JSON object is expected");
  return parse_json(request.body, api.options.limits.json);
}

void read_model(FieldReader& fields, const ChatService& service, const ServerOptions& options) {
  const auto model = fields.string("model", 256);
  if (!fields.ok() || options.any_model) return;
  if (!model) {
    fields.fail("model", fmt::format("model is missing; this server has \"{}\"", service.info().model_id));
  } else if (!service.serves(*model)) {
    Error error(ErrorCode::kNotFound,
                fmt::format("there is no model \"{}\"; this server has \"{}\"", *model, service.info().model_id),
                "model");
    error.reason = "model_not_found";
    fields.fail(std::move(error));
  }
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
