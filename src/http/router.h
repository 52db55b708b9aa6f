// http/router.h: the table of endpoints and what is checked before one of them runs.
//
// A request goes through gate() when its head is complete and through answer() when its body is. gate() refuses, in
// this order: a Host that names another machine, a path that does not exist, a method that the path does not have, a
// missing key, a body that is too large or no JSON; and answers OPTIONS itself.
//
// Threads  any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/auth.h"
#include "http/exchange.h"
#include "http/origin.h"
#include "http/request_body.h"

namespace hocket {

struct Route;

class Router {
 public:
  // `check_host`: the server listens on loopback only.
  Router(const Api& api, bool check_host);

  struct Gate {
    const Route* route = nullptr;          // to be given to answer()
    std::optional<HttpResponse> response;  // the request ends here
  };
  // `reserved`: the connection may only use routes that stay reachable under load.
  Gate gate(const HttpRequest& request, bool reserved) const;
  // Never throws.
  HttpResponse answer(const Route& route, const HttpRequest& request) const;

  HeaderList common_headers(const HttpRequest& request) const;
  KeyRing& keys() { return keys_; }

 private:
  std::optional<HttpResponse> check_body_headers(const HttpRequest& request, const Route& route) const;

  const Api api_;
  const bool check_host_;
  const CorsPolicy cors_;
  KeyRing keys_;
};

bool route_reads_body(const Route& route);
std::size_t route_body_limit(const Route& route, const HttpRequest& request, const HttpLimits& limits);

}  // namespace hocket
