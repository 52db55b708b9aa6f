// runtime/speculative/prompt_lookup.h: drafts from the sequence itself: what followed the last time.
//
// The longest suffix of the history that occurred before (of at most `longest` tokens, at least `shortest`) is looked
// up, and what came after it is proposed; of equally long ones the latest. Answers that quote, correct or repeat their
// prompt gain most. (Prompt lookup decoding: Saxena 2023.)
//
// Owns     an index of the history: 4 bytes a token and a map of its n-grams.
// Threads  one user at a time.
// Cost     propose(): constant for each new token, and at most `candidates` · `longest` comparisons.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "runtime/speculative/draft_source.h"

namespace hocket {

struct PromptLookupOptions {
  std::size_t shortest = 3;
  std::size_t longest = 32;
  std::size_t candidates = 32;  // earlier places that are compared, from the latest on
};

class PromptLookup final : public DraftSource {
 public:
  static constexpr std::size_t kLongest = 8;  // draft, unless the user says otherwise
  explicit PromptLookup(const PromptLookupOptions& options = {});

  DraftTraits traits() const override { return {.n_max = kLongest, .token_cost = 0, .acceptance = 0.5}; }
  Result<void> begin(std::size_t n_kept) override;
  Result<Draft> propose(const DraftRequest& request) override;

 private:
  void index(std::span<const TokenId> history);
  // Where the longest earlier match ends; kNowhere when there is none.
  uint32_t longest_match(std::span<const TokenId> history) const;

  PromptLookupOptions options_;
  std::unordered_map<uint64_t, uint32_t> latest_;  // hash of an n-gram → where it last ended
  std::vector<uint32_t> previous_;                 // where the n-gram that ends here ended before
};

}  // namespace hocket
