// base/utf8.h: what several modules ask of UTF-8 text.
//
// Threads  pure functions.
// Cost     linear in the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hocket {

// One decoded character: its code point and its length in bytes. A byte that starts no valid sequence (overlong forms,
// surrogates, values above U+10FFFF, truncated tails) decodes as U+FFFD of length 1.
struct Utf8Char {
  char32_t code_point;
  std::size_t n_bytes;
  bool valid;
};

// text must not be empty.
Utf8Char decode_utf8(std::string_view text);
void append_utf8(std::string& out, char32_t code_point);

bool is_valid_utf8(std::string_view text);

// Bytes at the end of text that are the beginning of a character whose remaining bytes may still come (0..3).
std::size_t incomplete_utf8_tail(std::string_view text);

// Every byte that is not part of a valid character becomes U+FFFD.
std::string repair_utf8(std::string_view text);

}  // namespace hocket
