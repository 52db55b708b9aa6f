// tokenizer/vocabulary_files.h: tokenizers from files, and golden JSON, for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"
#include "weights/gguf.h"

namespace hocket::test {

inline nlohmann::json read_golden(const std::string& name) {
  std::ifstream file(std::string(HOCKET_TEST_DATA) + "/tokenizer/" + name);
  return nlohmann::json::parse(file);
}

inline std::string llama_vocabulary(const std::string& name) {
  return std::string(HOCKET_LLAMA_SOURCE) + "/models/" + name;
}

inline std::string probe_vocabulary() {
  return std::string(HOCKET_TEST_DATA) + "/tokenizer/probe-vocab.gguf";
}

inline Result<std::unique_ptr<Tokenizer>> open_tokenizer(const std::string& path, const std::string& force_pre = "") {
  TRY_ASSIGN(const std::unique_ptr<GgufFile> file, GgufFile::open(path));
  return Tokenizer::load(file->metadata(), {force_pre});
}

inline std::unique_ptr<Tokenizer> must_open_tokenizer(const std::string& path, const std::string& force_pre = "") {
  auto tokenizer = open_tokenizer(path, force_pre);
  if (!tokenizer) {
    ADD_FAILURE() << path << ": " << tokenizer.error().param << ": " << tokenizer.error().message;
    return nullptr;
  }
  return std::move(tokenizer).value();
}

inline std::vector<TokenId> must_encode(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options) {
  auto ids = tokenizer.encode(text, options);
  if (!ids) {
    ADD_FAILURE() << ids.error().message;
    return {};
  }
  return *ids;
}

// Golden texts that are no UTF-8 are stored as {"hex": "…"}.
inline std::string golden_bytes(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  const auto hex = value.at("hex").get<std::string>();
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

// One token after the other, as "|piece|piece|", so that a failure shows where borders differ.
inline std::string shown(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string out = "|";
  for (const TokenId id : ids) out += tokenizer.piece(id, true) + "|";
  return out;
}

}  // namespace hocket::test
