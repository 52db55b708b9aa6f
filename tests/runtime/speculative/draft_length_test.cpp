#include "runtime/speculative/draft_length.h"

#include <gtest/gtest.h>

namespace hocket {
namespace {

DraftCosts costs(double row, double token = 0, double rejection = 0) {
  return {row, token, rejection};
}

TEST(DraftLength, StartsFromThePrior) {
  // With acceptance a at every depth the gain of k drafts is (1 + a + … + a^k) / (1 + 0.25 k): most at k = 3 for 0.75.
  EXPECT_EQ(DraftLength(8, 0.75, costs(0.25)).choose(), 3u);
  EXPECT_EQ(DraftLength(8, 0.9, costs(0.25)).choose(), 6u);
  EXPECT_EQ(DraftLength(8, 0.5, costs(0.25)).choose(), 1u);
  EXPECT_EQ(DraftLength(8, 0.2, costs(0.25)).choose(), 0u);
  EXPECT_EQ(DraftLength(0, 0.9, costs(0.25)).choose(), 0u);
}

TEST(DraftLength, DearerDraftsAreShorter) {
  EXPECT_EQ(DraftLength(8, 0.9, costs(0.25, 0.2)).choose(), 3u);
  EXPECT_EQ(DraftLength(8, 0.9, costs(0.25, 0.8)).choose(), 0u);
  EXPECT_LT(DraftLength(8, 0.9, costs(0.25, 0, 1)).choose(), 6u) << "each rejection costs a step";
}

TEST(DraftLength, GrowsWithSuccessAndGivesUpWithFailure) {
  DraftLength length(8, 0.5, costs(0.25));
  for (int i = 0; i < 30; ++i) length.observe(length.choose(), length.choose());
  EXPECT_EQ(length.choose(), 8u);
  for (int i = 0; i < 30; ++i) length.observe(8, 0);
  EXPECT_EQ(length.choose(), 0u);
}

TEST(DraftLength, TriesAgainAfterAWhile) {
  DraftLength length(4, 0.5, costs(0.25));
  for (int i = 0; i < 30; ++i) length.observe(4, 0);
  int n_idle = 0;
  while (length.choose() == 0 && n_idle < 1000) {
    length.pass();
    ++n_idle;
  }
  EXPECT_GT(n_idle, 20);
  EXPECT_LT(n_idle, 200);
}

TEST(DraftLength, OnlyJudgedDepthsAreEvidence) {
  DraftLength length(4, 0.5, costs(0.25));
  for (int i = 0; i < 50; ++i) length.observe(4, 1);  // the first always, the second never
  EXPECT_GT(length.acceptance(0), 0.9);
  EXPECT_LT(length.acceptance(1), 0.2);
  EXPECT_DOUBLE_EQ(length.acceptance(3), length.acceptance(1)) << "never reached";
  EXPECT_EQ(length.choose(), 1u);
}

}  // namespace
}  // namespace hocket
