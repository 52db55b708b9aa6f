// tokenizer/vocabulary.h: the tokens of a model file, before any rule of a tokenizer kind.
//
// Owns     texts and types; by_text points into texts.
// Threads  const after load.
// Errors   kBadModel naming the tokenizer.ggml.* key.
// Cost     look-up by text O(length).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer.h"
#include "weights/metadata.h"

namespace hocket {

struct Vocabulary {
  std::vector<std::string> texts;  // never empty strings, no duplicates
  std::vector<TokenType> types;
  std::unordered_map<std::string_view, TokenId> by_text;
  std::size_t max_text_bytes = 0;

  SpecialTokens special;                   // from here on: special_roles.h
  std::vector<TokenId> end_of_generation;  // ascending
  std::vector<TokenId> suppressed;         // ascending

  Vocabulary() = default;
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  std::size_t size() const { return texts.size(); }
  // kNoToken when there is none.
  TokenId find(std::string_view text) const;
};

Result<std::unique_ptr<Vocabulary>> read_vocabulary(const Metadata& metadata);

}  // namespace hocket
