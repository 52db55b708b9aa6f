// tokenizer/spaces.h: U+2581, the visible character that SPM and raw-text vocabularies write a space as.
//
// Threads  pure functions.
#pragma once

#include <string>
#include <string_view>

namespace hocket {

inline constexpr std::string_view kVisibleSpace = "\xE2\x96\x81";
inline constexpr char32_t kVisibleSpaceCharacter = 0x2581;

std::string with_visible_spaces(std::string_view text);
// Turns every U+2581 into a space, also one that the text itself had.
std::string with_plain_spaces(std::string_view text);

}  // namespace hocket
