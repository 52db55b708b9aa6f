#include "tokenizer/spaces.h"

namespace hocket {
namespace {

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  std::size_t at = 0;
  for (std::size_t next; (next = text.find(from, at)) != std::string_view::npos; at = next + from.size())
    out.append(text.substr(at, next - at)).append(to);
  return out.append(text.substr(at));
}

}  // namespace

std::string with_visible_spaces(std::string_view text) {
  return replaced(text, " ", kVisibleSpace);
}
std::string with_plain_spaces(std::string_view text) {
  return replaced(text, kVisibleSpace, " ");
}

}  // namespace hocket
