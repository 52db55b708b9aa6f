#include "runtime/speculative/prompt_lookup.h"

#include <gtest/gtest.h>

#include <numeric>

namespace hocket {
namespace {

using Tokens = std::vector<TokenId>;

Tokens propose(PromptLookup& lookup, const Tokens& history, std::size_t n_max = 4) {
  DraftRequest request;
  request.history = history;
  request.n_max = n_max;
  const auto draft = lookup.propose(request);
  EXPECT_TRUE(draft.ok());
  EXPECT_TRUE(draft->p.empty());
  return draft->tokens;
}

Tokens propose(const Tokens& history, std::size_t n_max = 4) {
  PromptLookup lookup;
  return propose(lookup, history, n_max);
}

TEST(PromptLookup, ProposesWhatFollowedTheLastTime) {
  EXPECT_EQ(propose({1, 2, 3, 4, 5, 6, 7, 9, 1, 2, 3}), (Tokens{4, 5, 6, 7}));
  EXPECT_EQ(propose({1, 2, 3, 4, 5, 6, 7, 9, 1, 2, 3}, 2), (Tokens{4, 5}));
}

TEST(PromptLookup, ProposesNothingWithoutAMatch) {
  EXPECT_EQ(propose({}), Tokens());
  EXPECT_EQ(propose({1}), Tokens());
  EXPECT_EQ(propose({1, 2, 3}), Tokens());
  EXPECT_EQ(propose({1, 2, 3, 4, 5, 6}), Tokens());
  EXPECT_EQ(propose({7, 2, 3, 4, 5, 1, 2, 3}), Tokens()) << "only two tokens in common";
  EXPECT_EQ(propose({1, 2, 3, 4, 1, 2, 3}, 0), Tokens());
}

TEST(PromptLookup, TheLongestMatchBeatsALaterOne) {
  // 8 1 2 3 → 50; later only 1 2 3 → 60.
  EXPECT_EQ(propose({8, 1, 2, 3, 50, 9, 1, 2, 3, 60, 8, 1, 2, 3}, 1), Tokens{50});
  EXPECT_EQ(propose({8, 1, 2, 3, 50, 9, 1, 2, 3, 60, 7, 1, 2, 3}, 1), Tokens{60}) << "equally long: the latest";
}

TEST(PromptLookup, ALoopGoesOnAsALoop) {
  EXPECT_EQ(propose({1, 2, 3, 1, 2, 3}, 7), (Tokens{1, 2, 3, 1, 2, 3, 1}));
  EXPECT_EQ(propose({5, 5, 5, 5}, 3), (Tokens{5, 5, 5}));
}

TEST(PromptLookup, GrowingHistoriesAreIndexedAsTheyCome) {
  const Tokens text{1, 2, 3, 4, 5, 1, 2, 3, 6, 2, 3, 4, 7, 1, 2, 3, 4};
  PromptLookup growing;
  ASSERT_TRUE(growing.begin(0).ok());
  for (std::size_t n = 1; n <= text.size(); ++n) {
    const Tokens head(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_EQ(propose(growing, head), propose(head)) << n << " tokens";
  }
}

TEST(PromptLookup, ANewSequenceKnowsNothingOfTheOneBefore) {
  PromptLookup lookup;
  EXPECT_EQ(propose(lookup, {1, 2, 3, 4, 1, 2, 3}, 1), Tokens{4});
  ASSERT_TRUE(lookup.begin(0).ok());
  EXPECT_EQ(propose(lookup, {9, 1, 2, 3}, 1), Tokens());
}

TEST(PromptLookup, LooksAtABoundedNumberOfPlaces) {
  // The long match lies behind more candidates than are compared.
  PromptLookupOptions options;
  options.candidates = 4;
  PromptLookup lookup(options);
  Tokens history{8, 9, 1, 2, 3, 50};
  for (int i = 0; i < 6; ++i) history.insert(history.end(), {100 + i, 1, 2, 3, 60 + i});
  history.insert(history.end(), {8, 9, 1, 2, 3});
  EXPECT_EQ(propose(lookup, history, 1), Tokens{65});
  EXPECT_EQ(propose(history, 1), Tokens{50}) << "32 candidates reach it";
}

TEST(PromptLookup, FindsEveryRepetitionOfALongText) {
  // Two copies of distinct tokens: in the second every suffix of three tokens has its place in the first.
  Tokens text(2000);
  std::iota(text.begin(), text.end(), 10);
  Tokens history = text;
  PromptLookup lookup;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    history.push_back(text[i]);
    const Tokens draft = propose(lookup, history, 1);
    ASSERT_EQ(draft, i < 2 ? Tokens() : Tokens{text[i + 1]}) << i;
  }
}

}  // namespace
}  // namespace hocket
