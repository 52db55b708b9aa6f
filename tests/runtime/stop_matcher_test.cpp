#include "runtime/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/text_automaton.h"

namespace hocket {
namespace {

TEST(StopMatcher, HoldsBackWhatMayBecomeAStopString) {
  StopMatcher matcher({"</s>", "User:"});
  EXPECT_EQ(matcher.push("Hello <"), "Hello ");
  EXPECT_EQ(matcher.push("/"), "");
  EXPECT_EQ(matcher.push("b>"), "</b>");
  EXPECT_EQ(matcher.push(" Us"), " ");
  EXPECT_EQ(matcher.push("er: hi"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.matched(), "User:");
  EXPECT_EQ(matcher.push("more"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, FinishGivesBackWhatWasHeld) {
  StopMatcher matcher({"abcd"});
  EXPECT_EQ(matcher.push("xabc"), "x");
  EXPECT_EQ(matcher.finish(), "abc");
  EXPECT_EQ(matcher.finish(), "");
  EXPECT_FALSE(matcher.stopped());
  EXPECT_EQ(matcher.push("d"), "d") << "what was given back is no beginning any more";
}

TEST(StopMatcher, WithoutStopStringsEverythingPasses) {
  StopMatcher none({});
  EXPECT_EQ(none.push("anything"), "anything");
  StopMatcher empty({""});
  EXPECT_EQ(empty.push("anything"), "anything");
  EXPECT_FALSE(empty.stopped());
}

TEST(StopMatcher, OfStringsThatEndTogetherTheLongestWins) {
  StopMatcher matcher({"b", "ab"});
  EXPECT_EQ(matcher.push("xab"), "x");
  EXPECT_EQ(matcher.matched(), "ab");
}

struct Expected {
  std::string text, matched;
};

// The stop string that ends first; of those that end together the longest.
Expected search(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::string best;
    for (const std::string& stop : stops) {
      if (stop.size() > best.size() && stop.size() <= end && text.compare(end - stop.size(), stop.size(), stop) == 0)
        best = stop;
    }
    if (!best.empty()) return {text.substr(0, end - best.size()), best};
  }
  return {text, ""};
}

TEST(StopMatcher, AgreesWithASearchOfTheWholeTextHoweverItIsSplit) {
  const uint32_t seed = 20240917;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto word = [&](std::size_t max) {
    std::string s(random() % (max + 1), 'a');
    for (char& c : s) c = static_cast<char>('a' + random() % 2);
    return s;
  };
  int n_stopped = 0;
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::string> stops(1 + random() % 4);
    for (std::string& stop : stops) stop = word(8);
    const std::string text = word(40);
    StopMatcher matcher(stops);
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t n = 1 + random() % 7;
      out += matcher.push(std::string_view(text).substr(at, n));
      at += n;
      const std::string sure = out;
      ASSERT_TRUE(text.starts_with(sure));
    }
    out += matcher.finish();
    const Expected expected = search(text, stops);
    ASSERT_EQ(out, expected.text) << text;
    ASSERT_EQ(matcher.matched(), expected.matched) << text;
    ASSERT_EQ(matcher.stopped(), !expected.matched.empty());
    n_stopped += matcher.stopped();
  }
  EXPECT_GT(n_stopped, 500);
  EXPECT_LT(n_stopped, 4900);
}

TEST(StopMatcher, HoldsBackNoMoreThanNeeded) {
  StopMatcher matcher({"aab"});
  EXPECT_EQ(matcher.push("aaaa"), "aa");
  EXPECT_EQ(matcher.push("c"), "aac");
}

}  // namespace
}  // namespace hocket
