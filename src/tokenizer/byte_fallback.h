// tokenizer/byte_fallback.h: tokens "<0x00>" … "<0xFF>" for bytes that no other token covers.
//
// Owns     the ids of the 256 tokens.
// Threads  const.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace hocket {

// The byte that a token's text names; empty when it has another form.
std::optional<uint8_t> byte_of_token(std::string_view text);

class ByteFallback {
 public:
  explicit ByteFallback(const Vocabulary& vocabulary);

  // One token a byte: "<0xXX>", else the token whose text is that byte, else the unknown token, else nothing.
  void append(std::string_view bytes, std::vector<TokenId>& out) const;
  // Bytes for which append() writes nothing.
  std::size_t n_missing() const;

 private:
  std::array<TokenId, 256> ids_{};
};

}  // namespace hocket
