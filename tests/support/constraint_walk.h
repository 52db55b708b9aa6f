// support/constraint_walk.h: writes a random text that a constraint allows.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tokenizer/token_constraint.h"

namespace hocket::fake {

// Draws allowed tokens until the end token, preferring what closes things. nullopt: not finished after max_tokens.
inline std::optional<std::string> random_walk(const Tokenizer& tokenizer, std::size_t n_vocab,
                                              TokenConstraint& constraint, std::mt19937& random,
                                              std::size_t max_tokens = 1500) {
  std::vector<uint32_t> mask((n_vocab + 31) / 32);
  std::string text;
  for (std::size_t step = 0; step < max_tokens; ++step) {
    const auto masked = constraint.allowed(mask);
    if (!masked) {
      ADD_FAILURE() << masked.error().message << " after " << text;
      return std::nullopt;
    }
    std::vector<TokenId> all, closing, ends;
    for (TokenId id = 0; id < static_cast<TokenId>(n_vocab); ++id) {
      if (*masked && (mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1) == 0) continue;
      if (!tokenizer.valid_id(id)) {
        ADD_FAILURE() << "id " << id << " is beyond the vocabulary";
        return std::nullopt;
      }
      all.push_back(id);
      if (tokenizer.is_end_of_generation(id)) {
        ends.push_back(id);
      } else if (tokenizer.type(id) == TokenType::kControl) {
        ADD_FAILURE() << "control token " << tokenizer.text(id) << " is allowed after " << text;
      } else if (const std::string piece = tokenizer.piece(id); piece == "\"" || piece == "}" || piece == "]") {
        closing.push_back(id);
      }
    }
    if (all.empty()) {
      ADD_FAILURE() << "nothing is allowed after " << text;
      return std::nullopt;
    }
    EXPECT_EQ(constraint.complete(), ends.size() == all.size()) << text;
    const bool close = random() % 2 == 0;
    const auto& pool = close && !ends.empty() ? ends : close && !closing.empty() ? closing : all;
    const TokenId id = pool[random() % pool.size()];
    if (const auto accepted = constraint.accept(id); !accepted) {
      ADD_FAILURE() << accepted.error().message << " after " << text;
      return std::nullopt;
    }
    if (tokenizer.is_end_of_generation(id)) {
      EXPECT_TRUE(constraint.complete());
      return text;
    }
    text += tokenizer.piece(id);
  }
  return std::nullopt;
}

}  // namespace hocket::fake
