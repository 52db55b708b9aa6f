// chat/tool_syntax/json_text.h: characters inside a JSON string.
//
// Threads  pure functions.
#pragma once

#include <fmt/format.h>

#include <string>

namespace hocket {

// Appends the character to the inside of a JSON string; bytes of UTF-8 one by one.
inline void append_json_character(std::string& out, char c) {
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\t') {
    out += "\\t";
  } else if (c == '\r') {
    out += "\\r";
  } else if (static_cast<unsigned char>(c) < 0x20) {
    out += fmt::format("\\u{:04x}", static_cast<int>(c));
  } else {
    out += c;
  }
}

}  // namespace hocket
