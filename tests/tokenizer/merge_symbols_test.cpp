#include "tokenizer/merge_symbols.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace hocket {
namespace {

using Ranks = std::map<std::string, int32_t>;  // of the joined text: equal joins share a rank, as in SPM

std::vector<std::string> merged(const std::string& text, const Ranks& ranks) {
  MergeScratch scratch;
  for (std::size_t i = 0; i < text.size(); ++i) scratch.add(-1, static_cast<uint32_t>(i), 1);
  merge_symbols(scratch, [&](const MergeSymbol& left, const MergeSymbol& right) -> RankedSymbol {
    const auto found = ranks.find(text.substr(left.begin, left.n_bytes + right.n_bytes));
    return found == ranks.end() ? RankedSymbol{} : RankedSymbol{found->second, 0};
  });
  std::vector<std::string> out;
  for (int32_t i = text.empty() ? -1 : 0; i >= 0; i = scratch.symbols[static_cast<std::size_t>(i)].right) {
    const MergeSymbol& symbol = scratch.symbols[static_cast<std::size_t>(i)];
    out.push_back(text.substr(symbol.begin, symbol.n_bytes));
  }
  return out;
}

// The definition: look at every pair, merge the best, start again.
std::vector<std::string> naively_merged(const std::string& text, const Ranks& ranks) {
  std::vector<std::string> parts;
  for (const char c : text) parts.emplace_back(1, c);
  for (;;) {
    std::size_t best = parts.size();
    int32_t best_rank = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ranks.find(parts[i] + parts[i + 1]);
      if (found == ranks.end() || (best < parts.size() && found->second >= best_rank)) continue;
      best = i;
      best_rank = found->second;
    }
    if (best == parts.size()) return parts;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(MergeSymbols, LowestRankFirstThenLeftmost) {
  EXPECT_EQ(merged("abc", {{"ab", 1}, {"bc", 0}}), (std::vector<std::string>{"a", "bc"}));
  EXPECT_EQ(merged("aaa", {{"aa", 0}}), (std::vector<std::string>{"aa", "a"}));
  EXPECT_TRUE(merged("", {{"aa", 0}}).empty());
}

TEST(MergeSymbols, EqualsTheDefinitionOnRandomTables) {
  const unsigned seed = 77;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    Ranks ranks;
    for (int i = 0; i < 12; ++i) {
      std::string text;
      for (std::size_t n = 2 + random() % 4; n > 0; --n) text += "abc"[random() % 3];
      ranks[text] = static_cast<int32_t>(random() % 8);
    }
    std::string text;
    for (std::size_t n = random() % 40; n > 0; --n) text += "abc"[random() % 3];
    ASSERT_EQ(merged(text, ranks), naively_merged(text, ranks)) << text;
  }
}

}  // namespace
}  // namespace hocket
