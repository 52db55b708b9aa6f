#include "http/origin.h"

#include <arpa/inet.h>

#include <algorithm>

namespace hocket {
namespace {

constexpr std::string_view kAllowedHeaders[] = {"authorization", "content-type", "x-api-key",
                                                "x-request-id",  "prefer",       "x-hocket-strict"};
constexpr std::string_view kStainless = "x-stainless-";

bool header_allowed(std::string_view name) {
  return equals_ignoring_case(name.substr(0, kStainless.size()), kStainless) ||
         std::any_of(std::begin(kAllowedHeaders), std::end(kAllowedHeaders),
                     [&](std::string_view h) { return equals_ignoring_case(h, name); });
}

// The names that a preflight asks for and that are allowed, besides the fixed ones.
std::string allowed_headers(std::string_view requested) {
  std::string list;
  for (const std::string_view name : kAllowedHeaders) list.append(list.empty() ? "" : ", ").append(name);
  while (!requested.empty()) {
    const std::size_t comma = std::min(requested.find(','), requested.size());
    std::string_view name = requested.substr(0, comma);
    requested.remove_prefix(std::min(comma + 1, requested.size()));
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (equals_ignoring_case(name.substr(0, kStainless.size()), kStainless) && header_allowed(name))
      list.append(", ").append(name);
  }
  return list;
}

// "host:port" → "host", "[::1]:80" → "::1".
std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end == std::string_view::npos ? std::string_view() : host.substr(1, end - 1);
  }
  return host.substr(0, host.find(':'));
}

}  // namespace

bool CorsPolicy::allows(std::string_view origin) const {
  return !origin.empty() &&
         std::any_of(origins_.begin(), origins_.end(), [&](const std::string& o) { return o == "*" || o == origin; });
}

HeaderList CorsPolicy::headers_for(const HttpRequest& request) const {
  if (origins_.empty()) return {};
  HeaderList headers{{"Vary", "Origin"}};
  if (const std::string_view origin = request.header("Origin"); allows(origin)) {
    headers.emplace_back("Access-Control-Allow-Origin", origin);
    headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id, Retry-After, Location");
  }
  return headers;
}

HttpResponse CorsPolicy::preflight(const HttpRequest& request, const std::string& methods) const {
  HttpResponse response;
  response.status = 204;
  response.headers.emplace_back("Allow", methods);
  if (allows(request.header("Origin"))) {
    response.headers.emplace_back("Access-Control-Allow-Methods", methods);
    response.headers.emplace_back("Access-Control-Allow-Headers",
                                  allowed_headers(request.header("Access-Control-Request-Headers")));
    response.headers.emplace_back("Access-Control-Max-Age", "600");
  }
  return response;
}

bool CorsPolicy::may_send_form(const HttpRequest& request) const {
  const std::string_view origin = request.header("Origin");
  const std::size_t scheme = origin.find("://");
  const bool same =
      scheme != std::string_view::npos && equals_ignoring_case(origin.substr(scheme + 3), request.header("Host"));
  return !request.has_header("Origin") || same || allows(origin);
}

bool is_loopback(std::string_view host) {
  if (equals_ignoring_case(host, "localhost")) return true;
  const std::string text(host);
  if (in_addr v4; inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool host_header_allowed(std::string_view header, const std::vector<std::string>& allowed) {
  const std::string_view host = without_port(header);
  return is_loopback(host) || std::any_of(allowed.begin(), allowed.end(),
                                          [&](const std::string& a) { return equals_ignoring_case(a, host); });
}

}  // namespace hocket
