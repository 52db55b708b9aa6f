#include "tokenizer/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>

namespace hocket {
namespace {

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";
constexpr std::size_t kMaxTokens = 16u << 20;

Result<void> read_types(const Metadata& metadata, Vocabulary& vocabulary) {
  vocabulary.types.assign(vocabulary.size(), TokenType::kNormal);
  TRY_ASSIGN(const std::vector<int64_t>* stored, metadata.integers(kTypesKey));
  if (stored == nullptr) return {};
  if (stored->size() != vocabulary.size()) {
    return Error(ErrorCode::kBadModel, fmt::format("{} types for {} tokens", stored->size(), vocabulary.size()),
                 std::string(kTypesKey));
  }
  for (std::size_t id = 0; id < stored->size(); ++id) {
    const int64_t type = (*stored)[id];
    if (type < 0 || type > static_cast<int64_t>(TokenType::kByte)) {
      return Error(ErrorCode::kBadModel, fmt::format("token {} has the unknown type {}", id, type),
                   std::string(kTypesKey));
    }
    // 0 is "undefined" in old writers.
    vocabulary.types[id] = type == 0 ? TokenType::kNormal : static_cast<TokenType>(type);
  }
  return {};
}

}  // namespace

TokenId Vocabulary::find(std::string_view text) const {
  const auto found = by_text.find(text);
  return found == by_text.end() ? kNoToken : found->second;
}

Result<std::unique_ptr<Vocabulary>> read_vocabulary(const Metadata& metadata) {
  TRY_ASSIGN(const std::vector<std::string>* tokens, metadata.strings(kTokensKey));
  if (tokens == nullptr || tokens->empty()) {
    return Error(ErrorCode::kBadModel, "the file has no tokens", std::string(kTokensKey));
  }
  if (tokens->size() > kMaxTokens) {
    return Error(ErrorCode::kBadModel, fmt::format("{} tokens; at most {} are supported", tokens->size(), kMaxTokens),
                 std::string(kTokensKey));
  }
  auto vocabulary = std::make_unique<Vocabulary>();
  vocabulary->texts = *tokens;
  vocabulary->by_text.reserve(tokens->size());
  for (std::size_t id = 0; id < tokens->size(); ++id) {
    std::string& text = vocabulary->texts[id];
    if (text.empty()) text = fmt::format("[EMPTY_{}]", id);
    const auto [other, inserted] = vocabulary->by_text.emplace(text, static_cast<TokenId>(id));
    if (!inserted) {
      return Error(ErrorCode::kBadModel, fmt::format("tokens {} and {} have the same text", other->second, id),
                   std::string(kTokensKey));
    }
    vocabulary->max_text_bytes = std::max(vocabulary->max_text_bytes, text.size());
  }
  TRY(read_types(metadata, *vocabulary));
  return vocabulary;
}

}  // namespace hocket
