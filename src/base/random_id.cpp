#include "base/random_id.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <string_view>

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

}  // namespace hocket
