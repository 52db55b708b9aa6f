// tokenizer/byte_alphabet.h: the printable characters that byte-level BPE writes bytes as.
//
// Source: GPT-2's encoder (Radford et al. 2019). Bytes 33–126, 161–172 and 174–255 are the characters of their own
// number; the other 68 in ascending order are U+0100, U+0101, …
//
// Threads  pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace hocket {

// The character of each byte, in UTF-8.
const std::array<std::string, 256>& byte_alphabet();

std::string bytes_to_alphabet(std::string_view bytes);

// Characters outside the alphabet stay as they are.
std::string alphabet_to_bytes(std::string_view text);

}  // namespace hocket
