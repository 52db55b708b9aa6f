// runtime/token_history.h: the last tokens of a sequence, and what counts in them.
//
// Owns     the tokens that its users look back on, no more.
// Threads  one user at a time.
// Cost     push() is constant on average.
#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/candidate_set.h"
#include "tokenizer/tokenizer.h"

namespace hocket {

class TokenHistory {
 public:
  explicit TokenHistory(std::size_t capacity) : capacity_(capacity) {}
  void push(TokenId id);
  // The last min(capacity, number pushed) tokens, oldest first.
  std::span<const TokenId> recent() const;

 private:
  std::size_t capacity_;
  std::vector<TokenId> ids_;
};

// Repetition, frequency and presence penalties over a window of tokens.
class Penalties {
 public:
  Penalties(std::size_t window, float repeat, float frequency, float presence)
      : window_(window), history_(window + 1), repeat_(repeat), frequency_(frequency), presence_(presence) {}
  void accept(TokenId id);
  void apply(CandidateSet& set) const;

 private:
  std::size_t window_;
  TokenHistory history_;  // one more than the window: the token that leaves it
  std::unordered_map<TokenId, int> counts_;
  float repeat_, frequency_, presence_;
};

}  // namespace hocket
