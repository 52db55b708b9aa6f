#include "http/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/log.h"
#include "http/body_intake.h"
#include "http/endpoints/endpoints.h"
#include "http/error_reply.h"

namespace hocket {

enum class RouteBody {
  kJson,
  kUpload,  // JSON, or multipart/form-data with sounds
  kBytes,   // a saved state
  kNone,    // whatever comes is not looked at
};

struct Route {
  std::string_view method;  // GET serves HEAD too
  std::string_view path;    // a final '*' stands for the rest, at least one character
  HttpResponse (*handler)(const HttpRequest&, const Api&);
  bool open = false;     // needs no key
  bool control = false;  // answered even when the connections are used up
  RouteBody body = RouteBody::kJson;
};

namespace {

constexpr bool kOpen = true;
constexpr bool kControl = true;

constexpr Route kRoutes[] = {
    {"GET", "/", get_welcome, kOpen},
    {"GET", "/health", get_health, kOpen, kControl},
    {"GET", "/livez", get_livez, kOpen, kControl},
    {"GET", "/readyz", get_health, kOpen, kControl},
    {"GET", "/metrics", get_metrics, !kOpen, kControl},
    {"GET", "/props", get_props},
    {"GET", "/logs", get_logs},
    {"GET", "/v1/models", get_models},
    {"GET", "/v1/models/*", get_model},
    {"POST", "/v1/chat/completions", post_chat_completions},
    {"POST", "/v1/completions", post_completions},
    {"POST", "/v1/embeddings", post_embeddings},
    {"POST", "/tokenize", post_tokenize},
    {"POST", "/detokenize", post_detokenize},
    {"POST", "/apply-template", post_apply_template},
    {"POST", "/v1/cancel", post_cancel, !kOpen, kControl},
    {"POST", "/v1/flow/ack", post_flow_ack, !kOpen, kControl},
    {"POST", "/v1/generation/pause", post_pause, !kOpen, kControl},
    {"POST", "/v1/generation/resume", post_resume, !kOpen, kControl},
    {"GET", "/v1/cache/status", get_cache_status, !kOpen, kControl},
    {"POST", "/v1/cache/clear", post_cache_clear},
    {"POST", "/v1/cache/fork", post_cache_fork},
    {"GET", "/v1/sessions", get_sessions, !kOpen, kControl},
    {"GET", "/v1/sessions/*", get_session_state},
    {"PUT", "/v1/sessions/*", put_session_state, !kOpen, !kControl, RouteBody::kBytes},
    {"DELETE", "/v1/sessions/*", delete_session},
    {"GET", "/v1/generation/status", get_generation_status, !kOpen, kControl},
    {"POST", "/lm", post_lm},
    {"POST", "/synth", post_synth, !kOpen, !kControl, RouteBody::kUpload},
    {"POST", "/understand", post_understand, !kOpen, !kControl, RouteBody::kUpload},
    {"POST", "/vae", post_vae, !kOpen, !kControl, RouteBody::kUpload},
    {"GET", "/job", get_job, !kOpen, kControl},
    {"POST", "/job", post_job, !kOpen, kControl, RouteBody::kNone},
    {"POST", "/props/refresh", post_props_refresh, !kOpen, !kControl, RouteBody::kNone},
    {"GET", "/v1/jobs", get_jobs, !kOpen, kControl},
    {"GET", "/v1/jobs/*", get_one_job, !kOpen, kControl},
    {"DELETE", "/v1/jobs/*", delete_job, !kOpen, kControl},
    {"POST", "/v1/audio/generations", post_audio_generations},
};

bool matches(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('*')) return pattern == path;
  pattern.remove_suffix(1);
  return path.size() > pattern.size() && path.starts_with(pattern);
}

std::string allowed_methods(std::string_view path) {
  std::string list;
  for (const Route& route : kRoutes) {
    if (!matches(route.path, path)) continue;
    list.append(list.empty() ? "" : ", ").append(route.method == "GET" ? "GET, HEAD" : route.method);
  }
  return list.empty() ? list : list + ", OPTIONS";
}

bool is_json_type(std::string_view type) {
  std::string_view essence = type.substr(0, type.find(';'));
  while (essence.ends_with(' ')) essence.remove_suffix(1);
  if (!equals_ignoring_case(essence, "application/json")) return false;
  const std::size_t charset = type.find("charset=");
  if (charset == std::string_view::npos) return true;
  std::string_view name = type.substr(charset + 8);
  name = name.substr(0, name.find(';'));
  if (name.size() >= 2 && name.front() == '"' && name.back() == '"') name = name.substr(1, name.size() - 2);
  return equals_ignoring_case(name, "utf-8") || equals_ignoring_case(name, "utf8");
}

}  // namespace

bool route_reads_body(const Route& route) {
  return route.method == "POST" || route.method == "PUT";
}

std::size_t route_body_limit(const Route& route, const HttpRequest& request, const HttpLimits& limits) {
  if (route.body == RouteBody::kBytes) return limits.max_state_bytes;
  return route.body == RouteBody::kUpload && request.multipart ? limits.max_upload_bytes : limits.max_body_bytes;
}

Router::Router(const Api& api, bool check_host)
    : api_(api), check_host_(check_host), cors_(api.options.cors_origins), keys_(api.options.api_keys) {}

HeaderList Router::common_headers(const HttpRequest& request) const {
  HeaderList headers = cors_.headers_for(request);
  headers.emplace_back("X-Request-Id", request.request_id);
  headers.emplace_back("X-Content-Type-Options", "nosniff");
  return headers;
}

std::optional<HttpResponse> Router::check_body_headers(const HttpRequest& request, const Route& route) const {
  // A page of another origin can send a body without a type and without asking first, but not without Origin.
  const bool typed = request.has_header("Content-Type");
  const bool form = route.body == RouteBody::kUpload && request.multipart;
  const bool no_matter = route.body == RouteBody::kNone && !request.multipart;
  const bool bytes = route.body == RouteBody::kBytes;
  if ((form || no_matter) && !cors_.may_send_form(request))
    return protocol_error(403, "pages of this origin may not send that (see --cors-origins)", "origin_not_allowed");
  const std::string_view type = request.header("Content-Type");
  const bool right_type = bytes ? equals_ignoring_case(type, "application/octet-stream") : is_json_type(type);
  if (!form && !no_matter && (typed ? !right_type : request.has_header("Origin")))
    return protocol_error(415,
                          fmt::format("the body must be sent as Content-Type: {}",
                                      bytes ? "application/octet-stream" : "application/json (UTF-8)"),
                          "unsupported_media_type");
  if (const auto coding = request.header("Content-Encoding");
      !coding.empty() && !equals_ignoring_case(coding, "identity"))
    return protocol_error(415, "compressed bodies are not supported", "unsupported_content_encoding");
  const std::string_view length = request.header("Content-Length");
  const std::size_t most = route_body_limit(route, request, api_.options.limits);
  uint64_t n_bytes = 0;
  const auto [end, fault] = std::from_chars(length.data(), length.data() + length.size(), n_bytes);
  if (!length.empty() && (fault == std::errc::result_out_of_range || n_bytes > most)) return body_too_large(most);
  if (!length.empty() && (fault != std::errc() || end != length.data() + length.size()))
    return protocol_error(400, "Content-Length is not a number", "bad_request");
  return std::nullopt;
}

Router::Gate Router::gate(const HttpRequest& request, bool reserved) const {
  if (check_host_ && !host_header_allowed(request.header("Host"), api_.options.allowed_hosts))
    return {nullptr,
            protocol_error(403, "this server answers to local names only (see --allowed-hosts)", "host_not_allowed")};

  const std::string allowed = allowed_methods(request.path);
  if (request.method == "OPTIONS")
    return {nullptr, cors_.preflight(request, allowed.empty() ? "GET, HEAD, POST, PUT, DELETE, OPTIONS" : allowed)};

  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  const Route* route = std::find_if(std::begin(kRoutes), std::end(kRoutes), [&](const Route& r) {
    return r.method == method && matches(r.path, request.path);
  });
  const bool found = route != std::end(kRoutes);
  if (reserved && !(found && route->control)) {
    HttpResponse busy = protocol_error(429, "too many connections", "too_many_connections");
    return {nullptr, std::move(busy)};
  }
  if (allowed.empty())
    return {nullptr, protocol_error(404, fmt::format("there is no {}", request.path.substr(0, 200)), "not_found")};
  if (!found) {
    HttpResponse wrong =
        protocol_error(405, fmt::format("{} takes {}", request.path.substr(0, 200), allowed), "method_not_allowed");
    wrong.headers.emplace_back("Allow", allowed);
    return {nullptr, std::move(wrong)};
  }
  if (!route->open && !keys_.accepts(request)) {
    HttpResponse denied = protocol_error(401, "the API key is missing or wrong", "invalid_api_key");
    denied.headers.emplace_back("WWW-Authenticate", "Bearer");
    return {nullptr, std::move(denied)};
  }
  if (route_reads_body(*route))
    if (auto refused = check_body_headers(request, *route)) return {nullptr, std::move(refused)};
  return {route, std::nullopt};
}

HttpResponse Router::answer(const Route& route, const HttpRequest& request) const {
  const auto start = Clock::now();
  HttpResponse response;
  try {
    response = route.handler(request, api_);
  } catch (const std::exception& e) {
    log_error("{}: {} {}: {}", request.request_id, request.method, request.path, e.what());
    response = protocol_error(500, "an internal error; the server's log has the details", "internal_error");
  }
  log_debug("{}: {} {} -> {} after {:.1f} ms", request.request_id, request.method, request.path, response.status,
            ms_since(start));
  return response;
}

}  // namespace hocket
