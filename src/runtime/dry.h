// runtime/dry.h: "don't repeat yourself", a penalty for tokens that would continue a repetition.
//
// For a token t: L = length of the longest suffix of the history that also occurred earlier, followed by t. From
// L ≥ allowed_length on the logit falls by multiplier · base^(L − allowed_length). A suffix does not reach over a token
// in which a sequence breaker ends.
//
// Owns     the window of tokens. Borrows the tokenizer.
// Threads  one user at a time.
// Cost     accept(): the bytes of the token. apply(): O(window) (Z-algorithm on the reversed window).
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/candidate_set.h"
#include "runtime/sampling.h"
#include "runtime/text_automaton.h"
#include "runtime/token_history.h"

namespace hocket {

class Dry {
 public:
  Dry(const SamplingParams& params, const Tokenizer& tokenizer, std::size_t window);
  void accept(TokenId id);
  void apply(CandidateSet& set);

 private:
  void find_repetitions();

  const Tokenizer* tokenizer_;
  float multiplier_, base_;
  std::size_t allowed_length_;
  TokenHistory history_;
  std::shared_ptr<const TextAutomaton> breakers_;
  TextAutomaton::State breaker_state_ = TextAutomaton::kStart;
  std::size_t since_breaker_ = 0;  // tokens after the one in which a breaker last ended
  std::vector<uint32_t> overlaps_;
  std::unordered_map<TokenId, std::size_t> lengths_;  // L of each token with L ≥ allowed_length
};

}  // namespace hocket
