// http/request_head.h: what a request head must look like before the HTTP library parses it.
//
// Stricter than the library: every line ends in CRLF, there are no control characters, and the method is one that
// exists. A head that two parsers could read differently is refused, not repaired.
//
// Threads  pure functions.
// Cost     linear in the head.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "http/options.h"

namespace hocket {

struct HeadFault {
  int status;
  std::string message;
  std::string code;
};

// Offset just behind the blank line that ends the head; npos when it is not there yet.
std::size_t head_end(std::string_view bytes);

// Checks a head that may still be incomplete: faults that more bytes cannot cure.
std::optional<HeadFault> check_partial_head(std::string_view bytes, const HttpLimits& limits);

// Checks a complete head, including its blank line.
std::optional<HeadFault> check_head(std::string_view head, const HttpLimits& limits);

}  // namespace hocket
