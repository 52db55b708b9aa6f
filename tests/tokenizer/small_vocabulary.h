// tokenizer/small_vocabulary.h: metadata of hand-made vocabularies.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/tokenizer.h"
#include "weights/metadata.h"

namespace hocket::test {

struct SmallToken {
  std::string text;
  TokenType type = TokenType::kNormal;
  double score = 0;
};

inline Metadata vocabulary_of(const std::string& kind, const std::vector<SmallToken>& tokens) {
  std::vector<std::string> texts;
  std::vector<int64_t> types;
  std::vector<double> scores;
  for (const SmallToken& token : tokens) {
    texts.push_back(token.text);
    types.push_back(static_cast<int64_t>(token.type));
    scores.push_back(token.score);
  }
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", kind);
  metadata.set("tokenizer.ggml.tokens", MetadataArray{texts});
  metadata.set("tokenizer.ggml.token_type", MetadataArray{types});
  metadata.set("tokenizer.ggml.scores", MetadataArray{scores});
  return metadata;
}

// Byte-level BPE: ids 0…255 are the bytes, then `more`. Merges are written in the byte alphabet.
inline Metadata byte_bpe(const std::vector<SmallToken>& more, const std::vector<std::string>& merges,
                         const std::string& pre = "gpt-2") {
  std::vector<SmallToken> tokens;
  for (const std::string& text : byte_alphabet()) tokens.push_back({text});
  tokens.insert(tokens.end(), more.begin(), more.end());
  Metadata metadata = vocabulary_of("gpt2", tokens);
  metadata.set("tokenizer.ggml.pre", pre);
  metadata.set("tokenizer.ggml.merges", MetadataArray{merges});
  return metadata;
}

// SPM: 0 <unk>, 1 <s>, 2 </s>, 3…258 the bytes, then `more`.
inline Metadata spm(const std::vector<SmallToken>& more) {
  std::vector<SmallToken> tokens{
      {"<unk>", TokenType::kUnknown}, {"<s>", TokenType::kControl}, {"</s>", TokenType::kControl}};
  const char* digits = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back({std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">", TokenType::kByte});
  tokens.insert(tokens.end(), more.begin(), more.end());
  return vocabulary_of("llama", tokens);
}

inline constexpr TokenId kFirstSpmByte = 3, kFirstSpmToken = 259;

}  // namespace hocket::test
