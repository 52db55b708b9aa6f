#include "base/utf8.h"

namespace hocket {
namespace {

// Bytes that the lead byte announces; 0 for a byte that starts no character.
std::size_t announced_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// Whether `byte` may follow at `index` (≥ 1) after `lead`: excludes overlong forms, surrogates and > U+10FFFF.
bool may_follow(unsigned char lead, std::size_t index, unsigned char byte) {
  if ((byte & 0xC0) != 0x80) return false;
  if (index != 1) return true;
  if (lead == 0xE0) return byte >= 0xA0;
  if (lead == 0xED) return byte <= 0x9F;
  if (lead == 0xF0) return byte >= 0x90;
  if (lead == 0xF4) return byte <= 0x8F;
  return true;
}

}  // namespace

Utf8Char decode_utf8(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t n = announced_length(lead);
  if (n == 1) return {lead, 1, true};
  if (n == 0 || n > text.size()) return {0xFFFD, 1, false};
  char32_t value = lead & (0x7F >> n);
  for (std::size_t i = 1; i < n; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (!may_follow(lead, i, byte)) return {0xFFFD, 1, false};
    value = (value << 6) | (byte & 0x3F);
  }
  return {value, n, true};
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    if (!c.valid) return false;
    text.remove_prefix(c.n_bytes);
  }
  return true;
}

std::size_t incomplete_utf8_tail(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto lead = static_cast<unsigned char>(text[text.size() - back]);
    if ((lead & 0xC0) == 0x80) continue;
    if (announced_length(lead) <= back) return 0;
    for (std::size_t i = 1; i < back; ++i)
      if (!may_follow(lead, i, static_cast<unsigned char>(text[text.size() - back + i]))) return 0;
    return back;
  }
  return 0;
}

std::string repair_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    if (c.valid)
      out.append(text.substr(0, c.n_bytes));
    else
      append_utf8(out, 0xFFFD);
    text.remove_prefix(c.n_bytes);
  }
  return out;
}

}  // namespace hocket
