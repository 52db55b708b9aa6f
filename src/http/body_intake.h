// http/body_intake.h: takes a request's body as it arrives, within the limits of its route.
//
// Owns     nothing; the body goes into the request.
// Threads  the connection's thread.
// Errors   a function returns false when the body is refused; fault() then has the answer.
#pragma once

#include <optional>
#include <string_view>

#include "http/exchange.h"
#include "http/options.h"

namespace hocket {

class BodyIntake {
 public:
  // `most` bytes in all.
  BodyIntake(HttpRequest& request, const HttpLimits& limits, std::size_t most)
      : request_(request), limits_(limits), most_(most) {}

  bool take(std::string_view bytes);
  // Of a multipart body: a part begins; its bytes.
  bool begin_part(std::string_view name, std::string_view filename, std::string_view content_type);
  bool take_of_part(std::string_view bytes);

  std::optional<HttpResponse> fault() { return std::move(fault_); }

 private:
  bool refuse(HttpResponse response);
  bool count(std::size_t n_bytes);

  HttpRequest& request_;
  const HttpLimits& limits_;
  const std::size_t most_;
  std::size_t n_bytes_ = 0;
  std::optional<HttpResponse> fault_;
};

}  // namespace hocket
