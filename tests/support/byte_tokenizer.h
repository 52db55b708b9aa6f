// support/byte_tokenizer.h: a vocabulary of one token per byte (ids 0…255) and the control tokens of ChatML.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "tokenizer/tokenizer.h"
#include "weights/metadata.h"

namespace hocket::fake {

inline constexpr TokenId kImStart = 256, kImEnd = 257, kFimPrefix = 258, kFimSuffix = 259, kFimMiddle = 260;

struct ByteTokenizerOptions {
  bool fill_in_the_middle = true;
  bool add_bos = false;                        // <|im_start|>
  std::vector<std::string> more_control = {};  // behind the others
};

// Text of a byte in the alphabet of byte-level BPE: printable Latin-1 as itself, the others from U+0100.
inline std::string byte_text(int byte) {
  const auto printable = [](int b) {
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);
  };
  std::string text;
  if (printable(byte)) {
    append_utf8(text, static_cast<char32_t>(byte));
    return text;
  }
  int n_before = 0;
  for (int b = 0; b < byte; ++b) n_before += printable(b) ? 0 : 1;
  append_utf8(text, static_cast<char32_t>(256 + n_before));
  return text;
}

inline Metadata byte_vocabulary(const ByteTokenizerOptions& options = {}) {
  std::vector<std::string> tokens;
  std::vector<int64_t> types;
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back(byte_text(byte));
    types.push_back(static_cast<int64_t>(TokenType::kNormal));
  }
  std::vector<std::string> control{"<|im_start|>", "<|im_end|>"};
  if (options.fill_in_the_middle) control.insert(control.end(), {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"});
  control.insert(control.end(), options.more_control.begin(), options.more_control.end());
  for (const std::string& text : control) {
    tokens.push_back(text);
    types.push_back(static_cast<int64_t>(TokenType::kControl));
  }
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", std::string("gpt2"));
  metadata.set("tokenizer.ggml.pre", std::string("gpt-2"));
  metadata.set("tokenizer.ggml.tokens", MetadataArray{tokens});
  metadata.set("tokenizer.ggml.token_type", MetadataArray{types});
  metadata.set("tokenizer.ggml.merges", MetadataArray{std::vector<std::string>{}});
  metadata.set("tokenizer.ggml.bos_token_id", int64_t{kImStart});
  metadata.set("tokenizer.ggml.eos_token_id", int64_t{kImEnd});
  metadata.set("tokenizer.ggml.add_bos_token", options.add_bos);
  return metadata;
}

// nullptr, with the reason on stderr, when the tokenizer refuses the vocabulary.
inline std::unique_ptr<Tokenizer> byte_tokenizer(const ByteTokenizerOptions& options = {}) {
  auto tokenizer = Tokenizer::load(byte_vocabulary(options));
  if (!tokenizer) {
    fprintf(stderr, "byte tokenizer: %s\n", tokenizer.error().message.c_str());
    return nullptr;
  }
  return std::move(tokenizer).value();
}

}  // namespace hocket::fake
