#include "http/request_head.h"

#include <fmt/format.h>

#include <algorithm>

namespace hocket {
namespace {

constexpr std::string_view kMethods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};

HeadFault bad(std::string message) {
  return {400, std::move(message), "bad_request"};
}

std::optional<HeadFault> check_request_line(std::string_view line, const HttpLimits& limits) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return bad("the request line is not METHOD TARGET VERSION");
  const std::string_view method = line.substr(0, first), target = line.substr(first + 1, last - first - 1),
                         version = line.substr(last + 1);
  if (target.empty() || target.find(' ') != std::string_view::npos) return bad("the request target is malformed");
  if (target.size() > limits.max_target_bytes)
    return HeadFault{414, fmt::format("the request target is longer than {} bytes", limits.max_target_bytes),
                     "uri_too_long"};
  if (version != "HTTP/1.1" && version != "HTTP/1.0")
    return HeadFault{505, "only HTTP/1.0 and HTTP/1.1 are spoken here", "http_version_not_supported"};
  if (std::find(std::begin(kMethods), std::end(kMethods), method) == std::end(kMethods))
    return HeadFault{501, "this request method is not implemented", "method_not_implemented"};
  return std::nullopt;
}

std::optional<HeadFault> check_field(std::string_view line) {
  if (line.front() == ' ' || line.front() == '\t') return bad("a header continues over two lines");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) return bad("a header line has no name");
  for (const char c : line.substr(0, colon))
    if (c == ' ' || c == '\t') return bad("a header name contains a space");
  return std::nullopt;
}

}  // namespace

std::size_t head_end(std::string_view bytes) {
  const std::size_t at = bytes.find("\r\n\r\n");
  return at == std::string_view::npos ? at : at + 4;
}

std::optional<HeadFault> check_partial_head(std::string_view bytes, const HttpLimits& limits) {
  if (bytes.size() > limits.max_head_bytes)
    return HeadFault{431, fmt::format("the request head is longer than {} bytes", limits.max_head_bytes),
                     "headers_too_large"};
  std::size_t n_lines = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t newline = bytes.find('\n', at);
    const std::string_view line = bytes.substr(at, newline == std::string_view::npos ? newline : newline - at);
    if (line.size() > limits.max_line_bytes + 1) {
      if (n_lines == 0) return HeadFault{414, "the request line is too long", "uri_too_long"};
      return HeadFault{431, fmt::format("a header line is longer than {} bytes", limits.max_line_bytes),
                       "headers_too_large"};
    }
    // The request line, the headers and the blank line.
    if (++n_lines > limits.max_head_lines + 2)
      return HeadFault{431, fmt::format("more than {} header lines", limits.max_head_lines), "headers_too_large"};
    for (std::size_t i = 0; i < line.size(); ++i) {
      const auto c = static_cast<unsigned char>(line[i]);
      const bool ends_line = c == '\r' && i + 1 == line.size();  // or its LF is not here yet
      if (!ends_line && ((c < 0x20 && c != '\t') || c == 0x7f))
        return bad("the request head contains a control character");
    }
    if (newline == std::string_view::npos) break;
    if (!line.ends_with('\r')) return bad("a line of the request head does not end in CRLF");
    at = newline + 1;
  }
  return std::nullopt;
}

std::optional<HeadFault> check_head(std::string_view head, const HttpLimits& limits) {
  if (auto fault = check_partial_head(head, limits)) return fault;
  std::size_t at = head.find("\r\n");
  if (auto fault = check_request_line(head.substr(0, at), limits)) return fault;
  for (at += 2; at < head.size();) {
    const std::size_t end = head.find("\r\n", at);
    if (end == at) break;
    if (auto fault = check_field(head.substr(at, end - at))) return fault;
    at = end + 2;
  }
  return std::nullopt;
}

}  // namespace hocket
