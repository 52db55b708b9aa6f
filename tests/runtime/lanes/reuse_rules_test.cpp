#include "runtime/lanes/reuse_rules.h"

#include <gtest/gtest.h>

namespace hocket {
namespace {

constexpr auto kAnywhere = [](std::size_t) { return true; };

KeptState state(std::size_t n_tokens, std::size_t n_strict, std::size_t n_prompt, bool has_row = false) {
  return {n_tokens, {n_strict, n_prompt}, has_row};
}

TEST(ReuseRules, AColdRunsChunksAreWhatAllMayUse) {
  const ReuseRules rules{64, 16, false};
  EXPECT_EQ(usable_tokens(state(200, 200, 200), 150, 300, false, rules, kAnywhere), 128u);
  EXPECT_EQ(usable_tokens(state(200, 100, 200), 150, 300, false, rules, kAnywhere), 64u);
  EXPECT_EQ(usable_tokens(state(200, 200, 200), 150, 300, true, rules, kAnywhere), 150u);
  EXPECT_EQ(usable_tokens(state(60, 60, 60), 60, 300, false, rules, kAnywhere), 0u);
}

TEST(ReuseRules, AWholePromptNeedsItsRow) {
  for (const bool exact : {false, true}) {
    const ReuseRules rules{64, 16, exact};
    EXPECT_EQ(usable_tokens(state(100, 100, 100, true), 100, 100, false, rules, kAnywhere), 100u);
    EXPECT_EQ(usable_tokens(state(100, 100, 100), 100, 100, false, rules, kAnywhere), exact ? 99u : 64u);
    // The row is that of the prompt's end, not of the answer's.
    EXPECT_EQ(usable_tokens(state(120, 100, 100, true), 120, 120, false, rules, kAnywhere), exact ? 119u : 64u);
  }
}

TEST(ReuseRules, ExactRowsLetAllContinueAnywhere) {
  const ReuseRules rules{64, 16, true};
  EXPECT_EQ(usable_tokens(state(200, 0, 90), 150, 300, false, rules, kAnywhere), 150u);
  // The last place where it can be cut.
  const auto marks = [](std::size_t n) { return n == 40 || n == 91 || n == 200; };
  EXPECT_EQ(usable_tokens(state(200, 0, 90), 150, 300, false, rules, marks), 91u);
  EXPECT_EQ(usable_tokens(state(200, 0, 90), 90, 300, false, rules, marks), 40u);
  EXPECT_EQ(usable_tokens(state(200, 0, 90), 39, 300, false, rules, marks), 0u);
  EXPECT_EQ(usable_tokens(state(200, 0, 90), 15, 300, false, rules, kAnywhere), 0u);  // not worth it
  const FoundState found = found_state(state(200, 0, 90), 150, 300, rules);
  EXPECT_EQ(found.status, CacheStatus::kGeneratedPrefix);
  EXPECT_EQ(found.n_strict, 150u);
  EXPECT_EQ(found.n_generated, 60u);
}

}  // namespace
}  // namespace hocket
