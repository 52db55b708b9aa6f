#include "tokenizer/splitter.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>

#include "base/utf8.h"

namespace hocket {
namespace {

using Pieces = std::vector<std::string>;

const Splitter* compiled(const std::vector<SplitRule>& rules) {
  static std::map<std::string, std::unique_ptr<Splitter>> known;
  std::string key;
  for (const SplitRule& rule : rules) key += rule.pattern + '\0';
  auto& entry = known[key];
  if (entry == nullptr) {
    auto splitter = Splitter::create(rules);
    if (splitter)
      entry = std::move(splitter).value();
    else
      ADD_FAILURE() << splitter.error().message;
  }
  return entry.get();
}

Pieces split_with(const std::vector<SplitRule>& rules, const std::string& text) {
  const Splitter* splitter = compiled(rules);
  if (splitter == nullptr) return {};
  std::vector<std::size_t> ends;
  const auto done = splitter->split(text, ends);
  EXPECT_TRUE(done.ok());
  Pieces out;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    EXPECT_GT(end, begin);
    out.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return out;
}

Pieces split(const std::string& pre, const std::string& text) {
  const auto rules = find_pretokenizer(pre);
  EXPECT_TRUE(rules.has_value()) << pre;
  return split_with(rules->rules, text);
}

Pieces split_by(const std::string& pattern, const std::string& text) {
  return split_with({{SplitRule::Kind::kRegex, pattern}}, text);
}

std::string random_text(std::mt19937& random, const std::vector<std::string>& alphabet, std::size_t max_characters) {
  std::string text;
  for (std::size_t n = random() % max_characters; n > 0; --n) text += alphabet[random() % alphabet.size()];
  return text;
}

const std::vector<std::string>& mixed_alphabet() {
  static const std::vector<std::string> alphabet{
      "a", "b", "Z", "Q",   "é", "É", "ǅ", "ʰ",  "漢", "カ", "한",     "ไ",      "\u0301", "\u0940",
      "1", "2", "٣", "½",   " ", " ", " ", "\n", "\r", "\t", "\u00A0", "\u3000", "\u180E", "\u0085",
      "'", "s", "S", "'ll", "!", "/", ".", "$",  "…",  "😀", "\u200D", "\uFEFF"};
  return alphabet;
}

TEST(Splitter, MatchesAndGapsBecomePieces) {
  EXPECT_EQ(split_by("[0-9]+", "ab12c3"), (Pieces{"ab", "12", "c", "3"}));
  EXPECT_EQ(split_by("[0-9]+", ""), Pieces{});
  EXPECT_EQ(split_by("[0-9]+", "ab"), Pieces{"ab"});
  EXPECT_EQ(split_by("(?=[0-9])", "é1é2"), (Pieces{"é", "1é", "2"}));
}

TEST(Splitter, WhiteSpaceIsUnicodes) {
  EXPECT_EQ(split_by(R"(\s+)", "a\u00A0\u3000b\u180Ec\u0085"), (Pieces{"a", "\u00A0\u3000", "b\u180Ec", "\u0085"}));
  EXPECT_EQ(split_by(R"([^\s]+)", "a\u180E b"), (Pieces{"a\u180E", " ", "b"}));
  EXPECT_EQ(split_by(R"(\S+)", "a\u180E b"), (Pieces{"a\u180E", " ", "b"}));
}

TEST(Splitter, NamesOutsideTheGoldenFile) {
  EXPECT_EQ(split("tiny_aya", "1234567 Ab"), (Pieces{"1", "234", "567", " Ab"}));
  EXPECT_EQ(split("afmoe", "x1234 漢字ab 12"), (Pieces{"x", "1", "234", " ", "漢字", "ab", " ", "12"}));
  EXPECT_EQ(split("minicpm5", "a12345"), (Pieces{"a", "123", "45"}));
  EXPECT_EQ(split("exaone-moe", "one two  three1"), (Pieces{"one two", " ", " three", "1"}));
  EXPECT_EQ(split("k2-horizon", "ab\u200Dc 1234"), (Pieces{"ab\u200Dc", " ", "123", "4"}));
  EXPECT_EQ(split("jais-2", "a       b"), (Pieces{"a", "    ", "  ", " b"}));
  EXPECT_EQ(split("granite-embed-multi-97m", "HelloWorld a\u0301b's"), (Pieces{"Hello", "World", " a\u0301b's"}));
  EXPECT_EQ(split("sarvam-moe", "a b\n\nc"), (Pieces{"a b", "\n\n", "c"}));
}

TEST(Splitter, UnknownNames) {
  EXPECT_FALSE(find_pretokenizer("").has_value());
  EXPECT_FALSE(find_pretokenizer("Llama3").has_value());
  EXPECT_GE(pretokenizer_names().size(), 80u);
}

TEST(Splitter, DigitGroupsEqualTheirRegularExpression) {
  const unsigned seed = 5;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = random_text(random, {"1", "2", "3", "a", "é"}, 30);
    ASSERT_EQ(split_with({{SplitRule::Kind::kDigitGroups, ""}}, text), split_by("(?=([0-9]{3})+(?![0-9]))", text))
        << text;
  }
}

// The table writes some rules so that they match in constant memory or linear time. Here they are as published.
TEST(Splitter, RewrittenRulesEqualThePublishedOnes) {
  const std::string contraction = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])";
  const std::string prefix = R"([^\r\n\p{L}\p{N}]?)";
  const auto cased = [&](const std::string& letters, const std::string& tail) {
    const std::string upper = "((?=" + letters + ")([^a-z]))", lower = "((?=" + letters + ")([^A-Z]))";
    return prefix + upper + "*" + lower + "+" + tail + "|" + prefix + upper + "+" + lower + "*" + tail + "|";
  };
  const std::string rest = R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const std::vector<std::pair<std::string, std::string>> published{
      {"tekken", cased(R"([\p{L}])", "") + R"(\p{N}|)" + rest},
      {"gpt-4o", cased(R"([\p{L}])", contraction + "?") + R"(\p{N}{1,3}|)" + rest},
      {"granite-embed-multi-97m", cased(R"([\p{L}\p{M}])", contraction + "?") + R"(\p{N}{1,3}|)" + rest},
      {"exaone-moe",
       contraction + "|" + prefix +
           R"((?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"},
  };
  const unsigned seed = 6;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 3000; ++round) {
    const std::string text = random_text(random, mixed_alphabet(), 24);
    for (const auto& [name, pattern] : published) ASSERT_EQ(split(name, text), split_by(pattern, text)) << name;
    ASSERT_EQ(split_by(R"((?<!\s)\s++\z)", text), split_by(R"(\s+$)", text));
  }
}

TEST(Splitter, EveryNameCoversRandomTextAndKeepsCharactersWhole) {
  const unsigned seed = 7;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const std::string_view name : pretokenizer_names()) {
    for (int round = 0; round < 30; ++round) {
      const std::string text = random_text(random, mixed_alphabet(), 60);
      for (const std::string& piece : split(std::string(name), text)) ASSERT_TRUE(is_valid_utf8(piece)) << name;
    }
  }
}

TEST(Splitter, BadBytesSplitLikeReplacementCharacters) {
  EXPECT_EQ(split("gpt-2", "ab\xFF\xC3 c\xE2\x96"), (Pieces{"ab", "\xFF\xC3", " c", "\xE2\x96"}));
  const unsigned seed = 8;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::string text = random_text(random, mixed_alphabet(), 30);
    for (std::size_t n = random() % 4; n > 0 && !text.empty(); --n)
      text[random() % text.size()] = static_cast<char>(random());
    Pieces repaired = split("llama3", text);
    for (std::string& piece : repaired) piece = repair_utf8(piece);
    ASSERT_EQ(repaired, split("llama3", repair_utf8(text)));
  }
}

// Quadratic time would need minutes for each of these.
TEST(Splitter, LongRunsUnderEveryName) {
  const std::size_t n = 200'000;
  std::vector<std::string> texts{std::string(n, 'a'),        std::string(n, 'A'),       std::string(n, ' '),
                                 std::string(n, ' ') + "x",  std::string(n, ' ') + "5", std::string(n, '\n'),
                                 std::string(n, '\t') + "!", std::string(n, '7'),       std::string(n, '!')};
  for (const std::string& unit :
       {std::string("é"), std::string("漢"), std::string("a "), std::string("'"), std::string("\u0301"),
        std::string("\u3000"), std::string(" \n"), std::string("\xFF"), std::string("Aa1")}) {
    texts.emplace_back();
    for (std::size_t i = 0; i < n / unit.size(); ++i) texts.back() += unit;
  }
  for (const std::string_view name : pretokenizer_names()) {
    const auto splitter = Splitter::create(find_pretokenizer(name)->rules);
    ASSERT_TRUE(splitter.ok()) << name;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      std::vector<std::size_t> ends;
      ASSERT_TRUE((*splitter)->split(texts[i], ends).ok()) << name << ", text " << i;
      ASSERT_EQ(ends.back(), texts[i].size());
    }
  }
}

}  // namespace
}  // namespace hocket
