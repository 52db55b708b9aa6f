#include "tokenizer/special_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace hocket {

bool operator==(const Fragment& a, const Fragment& b) {
  return a.id == b.id && a.begin == b.begin && a.end == b.end;
}
void PrintTo(const Fragment& f, std::ostream* out) {
  *out << f.id << ":[" << f.begin << "," << f.end << ")";
}

namespace {

// The definition: one scan of the text for each token, the longest first.
std::vector<Fragment> naive_partition(std::vector<SpecialText> tokens, const std::string& text) {
  std::stable_sort(tokens.begin(), tokens.end(),
                   [](const SpecialText& a, const SpecialText& b) { return a.text.size() > b.text.size(); });
  std::vector<Fragment> fragments;
  if (!text.empty()) fragments.push_back({kNoToken, 0, text.size()});
  for (const SpecialText& token : tokens) {
    std::vector<Fragment> next;
    for (const Fragment& fragment : fragments) {
      if (fragment.id != kNoToken) {
        next.push_back(fragment);
        continue;
      }
      std::size_t at = fragment.begin;
      for (;;) {
        const std::size_t found = text.find(token.text, at);
        if (found == std::string::npos || found + token.text.size() > fragment.end) break;
        std::size_t from = found, to = found + token.text.size();
        while (token.strip_left && from > at && text[from - 1] == ' ') --from;
        while (token.strip_right && to < fragment.end && text[to] == ' ') ++to;
        if (from > at) next.push_back({kNoToken, at, from});
        next.push_back({token.id, found, found + token.text.size()});
        at = to;
      }
      if (at < fragment.end) next.push_back({kNoToken, at, fragment.end});
    }
    fragments = next;
  }
  return fragments;
}

TEST(SpecialMatcher, NothingToFind) {
  const SpecialMatcher none({});
  EXPECT_TRUE(none.partition("").empty());
  EXPECT_EQ(none.partition("abc"), (std::vector<Fragment>{{kNoToken, 0, 3}}));
}

TEST(SpecialMatcher, LongerTokenWinsOverAnEarlierOne) {
  const SpecialMatcher matcher({{7, "ab", false, false}, {8, "bcd", false, false}});
  EXPECT_EQ(matcher.partition("abcd"), (std::vector<Fragment>{{kNoToken, 0, 1}, {8, 1, 4}}));
}

TEST(SpecialMatcher, LowerIdWinsAmongEqualLengths) {
  const SpecialMatcher matcher({{7, "bc", false, false}, {8, "ab", false, false}});
  EXPECT_EQ(matcher.partition("abc"), (std::vector<Fragment>{{kNoToken, 0, 1}, {7, 1, 3}}));
}

TEST(SpecialMatcher, StripsWhiteSpaceOnTheGivenSide) {
  const SpecialMatcher matcher({{1, "<r>", false, true}, {2, "<l>", true, false}});
  EXPECT_EQ(matcher.partition("a <r> \n b <l> c"),
            (std::vector<Fragment>{{kNoToken, 0, 2}, {1, 2, 5}, {kNoToken, 8, 9}, {2, 10, 13}, {kNoToken, 13, 15}}));
}

TEST(SpecialMatcher, EqualsOneScanPerTokenOnRandomText) {
  const unsigned seed = 20240611;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 3000; ++round) {
    std::vector<SpecialText> tokens;
    const std::size_t n_tokens = 1 + random() % 8;
    while (tokens.size() < n_tokens) {
      std::string text;
      for (std::size_t n = 1 + random() % 5; n > 0; --n) text += "ab "[random() % 3];
      const bool known =
          std::any_of(tokens.begin(), tokens.end(), [&](const SpecialText& t) { return t.text == text; });
      if (known) {
        if (random() % 4 == 0) break;
        continue;
      }
      const auto id = static_cast<TokenId>(tokens.size());
      tokens.push_back({id, text, random() % 6 == 0, random() % 6 == 0});
    }
    std::string text;
    for (std::size_t n = random() % 40; n > 0; --n) text += "ab c"[random() % 4];
    ASSERT_EQ(SpecialMatcher(tokens).partition(text), naive_partition(tokens, text)) << "\"" << text << "\"";
  }
}

TEST(SpecialMatcher, LongRunsOfNestedTokens) {
  std::vector<SpecialText> tokens;
  for (TokenId id = 0; id < 40; ++id)
    tokens.push_back({id, std::string(static_cast<std::size_t>(id) + 2, '\n'), false, false});
  const std::size_t n = 1 << 20;
  const auto fragments = SpecialMatcher(tokens).partition(std::string(n, '\n'));
  // 41 at a time; the rest is a token of its own.
  ASSERT_EQ(fragments.size(), n / 41 + 1);
  EXPECT_EQ(fragments.front().id, 39);
  EXPECT_EQ(fragments.back(), (Fragment{static_cast<TokenId>(n % 41) - 2, n - n % 41, n}));
}

}  // namespace
}  // namespace hocket
