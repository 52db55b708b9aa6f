#include "tokenizer/byte_fallback.h"

#include <fmt/format.h>

#include <algorithm>

namespace hocket {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::optional<uint8_t> byte_of_token(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return std::nullopt;
  const int high = hex_digit(text[3]), low = hex_digit(text[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

ByteFallback::ByteFallback(const Vocabulary& vocabulary) {
  for (std::size_t byte = 0; byte < ids_.size(); ++byte) {
    const char single = static_cast<char>(byte);
    ids_[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte));
    if (ids_[byte] == kNoToken) ids_[byte] = vocabulary.find(std::string_view(&single, 1));
    if (ids_[byte] == kNoToken) ids_[byte] = vocabulary.special.unk;
  }
}

void ByteFallback::append(std::string_view bytes, std::vector<TokenId>& out) const {
  for (const char c : bytes)
    if (const TokenId id = ids_[static_cast<uint8_t>(c)]; id != kNoToken) out.push_back(id);
}

std::size_t ByteFallback::n_missing() const {
  return static_cast<std::size_t>(std::count(ids_.begin(), ids_.end(), kNoToken));
}

}  // namespace hocket
