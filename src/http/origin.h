// http/origin.h: which browsers' pages may talk to the server: CORS, and the Host header against DNS rebinding.
//
// Threads  const.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/exchange.h"

namespace hocket {

class CorsPolicy {
 public:
  explicit CorsPolicy(std::vector<std::string> origins) : origins_(std::move(origins)) {}
  // Headers to add to every response to this request.
  HeaderList headers_for(const HttpRequest& request) const;
  // The answer to an OPTIONS request; `methods` as in "GET, HEAD".
  HttpResponse preflight(const HttpRequest& request, const std::string& methods) const;
  // Whether a page may send a form, or nothing at all, by POST: browsers let any page do that without asking first.
  bool may_send_form(const HttpRequest& request) const;

 private:
  bool allows(std::string_view origin) const;
  std::vector<std::string> origins_;
};

// 127.0.0.0/8, ::1 or "localhost".
bool is_loopback(std::string_view host);

// Whether a Host header names this machine's loopback or one of `allowed` (names without a port).
bool host_header_allowed(std::string_view header, const std::vector<std::string>& allowed);

}  // namespace hocket
