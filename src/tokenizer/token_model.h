// tokenizer/token_model.h: what differs between tokenizer kinds: how plain text becomes tokens, and a token its bytes.
//
// Threads  const; any.
// Errors   encode(): kInvalid when the text passes a limit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace hocket {

class TokenModel {
 public:
  virtual ~TokenModel() = default;

  // Appends the tokens of a text without special tokens, which is not empty. `after_special`: it is the beginning of
  // the whole text or follows a special token.
  virtual Result<void> encode(std::string_view text, bool after_special, std::vector<TokenId>& out) const = 0;

  // The bytes of a normal token, from its stored text.
  virtual std::string bytes_of(std::string_view stored) const = 0;

  // Whether encode() puts a space before a text that begins a sequence.
  virtual bool adds_leading_space() const { return false; }
};

}  // namespace hocket
