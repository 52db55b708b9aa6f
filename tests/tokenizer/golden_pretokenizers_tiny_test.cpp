// Every pre-tokenizer name of the golden file, on a vocabulary whose merges make piece borders visible in the ids.

#include <gtest/gtest.h>

#include "tokenizer/vocabulary_files.h"

namespace hocket::test {
namespace {

TEST(GoldenPretokenizers, EveryNameSplitsEveryProbeText) {
  const auto golden = read_golden("bpe-pretokenizers.json");
  const auto texts = golden.at("texts").get<std::vector<std::string>>();
  ASSERT_EQ(golden.at("expected").size(), 47u);
  for (const auto& [name, expected] : golden.at("expected").items()) {
    SCOPED_TRACE(name);
    const auto tokenizer = must_open_tokenizer(probe_vocabulary(), name);
    ASSERT_NE(tokenizer, nullptr);
    EXPECT_EQ(tokenizer->pre(), name);
    ASSERT_EQ(expected.size(), texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto want = expected[i].get<std::vector<TokenId>>();
      const auto got = must_encode(*tokenizer, texts[i], {false, false});
      EXPECT_EQ(got, want) << "text " << i << "\n got " << shown(*tokenizer, got) << "\nwant "
                           << shown(*tokenizer, want);
    }
  }
}

}  // namespace
}  // namespace hocket::test
