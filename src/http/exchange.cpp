#include "http/exchange.h"

#include <algorithm>

namespace hocket {
namespace {

constexpr std::chrono::seconds kProbeInterval{5};

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

bool DisconnectWatch::gone() {
  switch (link_.peer()) {
    case PeerState::kOpen:
      return false;
    case PeerState::kGone:
      return true;
    case PeerState::kHalfClosed:
      break;
  }
  if (const auto now = Clock::now(); now >= next_probe_) {
    link_.probe();
    next_probe_ = now + kProbeInterval;
  }
  return false;
}

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (equals_ignoring_case(key, name)) return value;
  return {};
}

bool HttpRequest::has_header(std::string_view name) const {
  return std::any_of(headers.begin(), headers.end(),
                     [&](const auto& h) { return equals_ignoring_case(h.first, name); });
}

const std::string* HttpRequest::query_value(std::string_view name) const {
  for (const auto& [key, value] : query)
    if (key == name) return &value;
  return nullptr;
}

const BodyPart* HttpRequest::part(std::string_view name) const {
  for (const BodyPart& p : parts)
    if (p.name == name) return &p;
  return nullptr;
}

}  // namespace hocket
