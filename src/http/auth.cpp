#include "http/auth.h"

namespace hocket {
namespace {

// Time depends on the length of `shown` only.
bool same_bytes(std::string_view shown, std::string_view key) {
  unsigned difference = shown.size() == key.size() ? 0 : 1;
  for (std::size_t i = 0; i < shown.size(); ++i)
    difference |=
        static_cast<unsigned char>(shown[i]) ^ static_cast<unsigned char>(key.empty() ? 0 : key[i % key.size()]);
  return difference == 0;
}

}  // namespace

std::string_view shown_key(const HttpRequest& request) {
  constexpr std::string_view kScheme = "Bearer ";
  std::string_view value = request.header("Authorization");
  if (value.size() > kScheme.size() && equals_ignoring_case(value.substr(0, kScheme.size()), kScheme)) {
    value.remove_prefix(kScheme.size());
    while (value.starts_with(' ')) value.remove_prefix(1);
    return value;
  }
  return request.header("x-api-key");
}

bool KeyRing::accepts(const HttpRequest& request) const {
  const std::string_view shown = shown_key(request);
  const std::lock_guard lock(mutex_);
  bool found = keys_.empty();
  for (const std::string& key : keys_) found |= same_bytes(shown, key) && !key.empty();
  return found;
}

void KeyRing::replace(std::vector<std::string> keys) {
  const std::lock_guard lock(mutex_);
  keys_ = std::move(keys);
}

}  // namespace hocket
