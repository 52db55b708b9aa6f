#include "http/error_reply.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace hocket {
namespace {

constexpr std::string_view kBadRequest = "invalid_request_error";
constexpr std::string_view kServerError = "server_error";

struct Row {
  ErrorCode code;
  std::string_view reason;  // "": any other reason
  int status;
  std::string_view type;
  std::string_view wire_code;  // "": the error's reason, or null
  int retry_after_s;           // 0: no header
  bool never_retry;            // clients retry 5xx by themselves; these would only fail or cost again
};

// The first row that fits decides.
constexpr Row kRows[] = {
    {ErrorCode::kInvalid, "session_model", 409, kBadRequest, "", 0, true},
    {ErrorCode::kInvalid, "session_layout", 409, kBadRequest, "", 0, true},
    {ErrorCode::kInvalid, "too_large", 413, kBadRequest, "request_too_large", 0, false},
    {ErrorCode::kInvalid, "", 400, kBadRequest, "", 0, false},
    {ErrorCode::kUnsupported, "models_missing", 501, kServerError, "models_missing", 0, true},
    {ErrorCode::kUnsupported, "", 400, kBadRequest, "", 0, false},
    {ErrorCode::kNotFound, "", 404, kBadRequest, "", 0, false},
    {ErrorCode::kBusy, "queue_full", 429, "rate_limit_error", "rate_limit_exceeded", 1, false},
    {ErrorCode::kBusy, "cache_budget_exceeded", 409, kBadRequest, "cache_budget_exceeded", 0, true},
    {ErrorCode::kBusy, "loading", 503, kServerError, "loading", 2, false},
    {ErrorCode::kBusy, "draining", 503, kServerError, "draining", 5, false},
    {ErrorCode::kBusy, "", 503, kServerError, "overloaded", 1, false},
    {ErrorCode::kOutOfMemory, "", 503, kServerError, "out_of_memory", 5, false},
    {ErrorCode::kCancelled, "draining", 503, kServerError, "draining", 5, false},
    {ErrorCode::kCancelled, "flow_timeout", 499, "request_cancelled", "flow_timeout", 0, true},
    {ErrorCode::kCancelled, "", 499, "request_cancelled", "request_cancelled", 0, true},
    {ErrorCode::kTimeout, "queue_timeout", 503, kServerError, "overloaded", 5, false},
    {ErrorCode::kTimeout, "", 504, kServerError, "timeout", 0, true},
    {ErrorCode::kBadModel, "", 500, kServerError, "bad_model", 0, true},
    {ErrorCode::kPeer, "", 502, kServerError, "", 0, false},
    {ErrorCode::kIo, "", 500, kServerError, "", 0, false},
    {ErrorCode::kInternal, "", 500, kServerError, "", 0, false},
};

const Row& row_of(const Error& error) {
  for (const Row& row : kRows)
    if (row.code == error.code && (row.reason.empty() || row.reason == error.reason)) return row;
  return kRows[std::size(kRows) - 1];
}

Json text_or_null(std::string_view text) {
  return text.empty() ? Json(nullptr) : Json(std::string(text));
}

Json error_object(std::string_view message, std::string_view type, std::string_view param, std::string_view code) {
  Json object = Json::object();
  object["message"] = std::string(message);
  object["type"] = std::string(type);
  object["param"] = text_or_null(param);
  object["code"] = text_or_null(code);
  return object;
}

}  // namespace

int http_status(const Error& error) {
  return row_of(error).status;
}

Json error_body(const Error& error) {
  const Row& row = row_of(error);
  Json object =
      error_object(error.message, row.type, error.param, row.wire_code.empty() ? error.reason : row.wire_code);
  for (const auto& [name, number] : error.numbers) object[name] = number;
  Json body = Json::object();
  body["error"] = std::move(object);
  return body;
}

HttpResponse error_response(const Error& error) {
  const Row& row = row_of(error);
  HttpResponse response;
  response.status = row.status;
  response.body = dump_json(error_body(error));
  if (row.retry_after_s > 0) response.headers.emplace_back("Retry-After", std::to_string(row.retry_after_s));
  if (row.never_retry) response.headers.emplace_back("x-should-retry", "false");
  return response;
}

HttpResponse respond(Result<HttpResponse> response) {
  return response ? std::move(*response) : error_response(response.error());
}

HttpResponse body_too_large(std::size_t most) {
  return protocol_error(413, fmt::format("the body is larger than {} bytes", most), "request_too_large");
}

HttpResponse protocol_error(int status, std::string_view message, std::string_view code, std::string_view param) {
  const std::string_view type = status == 429 ? "rate_limit_error" : status >= 500 ? kServerError : kBadRequest;
  HttpResponse response;
  response.status = status;
  Json body = Json::object();
  body["error"] = error_object(message, type, param, code);
  response.body = dump_json(body);
  if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace hocket
