#include "http/ids.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/check.h"

namespace hocket {

std::string random_id() {
  std::array<unsigned char, 16> bytes;
  // Requests of up to 256 bytes are never cut short once the source is seeded; before that the call waits.
  ssize_t n;
  do n = getrandom(bytes.data(), bytes.size(), 0);
  while (n < 0 && errno == EINTR);
  CHECK(n == static_cast<ssize_t>(bytes.size()));

  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string id;
  for (const unsigned char b : bytes) {
    id += kDigits[b >> 4];
    id += kDigits[b & 15];
  }
  return id;
}

bool acceptable_request_id(std::string_view id) {
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  });
}

}  // namespace hocket
