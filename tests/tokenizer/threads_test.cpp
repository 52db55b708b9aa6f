// One tokenizer, many threads: no call may see another's state. ThreadSanitizer is the reader that matters.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tokenizer/small_vocabulary.h"

namespace hocket::test {
namespace {

void expect_the_same_from_many_threads(const Metadata& metadata) {
  const auto loaded = Tokenizer::load(metadata);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Tokenizer& tokenizer = **loaded;
  // Words, digits for the splitter's groups, characters of every length, a control token, and bytes that are no text.
  const std::vector<std::string> texts{"one two one two 1234567 it's", "h\xC3\xA9 \xE4\xB8\xAD\xF0\x9F\x98\x80\n\n x",
                                       "<end>a<end> \xFF\xC3", std::string(3000, 'a')};
  const EncodeOptions options{true, true};
  std::vector<std::vector<TokenId>> alone;
  for (const std::string& text : texts) alone.push_back(*tokenizer.encode(text, options));

  constexpr std::size_t kThreads = 4, kRounds = 20;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < kRounds; ++i) {
        const std::size_t which = (t + i) % texts.size();
        const auto ids = tokenizer.encode(texts[which], options);
        EXPECT_TRUE(ids.ok() && *ids == alone[which]);
        EXPECT_EQ(tokenizer.decode(alone[which], true), tokenizer.decode(alone[which], true));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(TokenizerThreads, ByteBpe) {
  const std::vector<SmallToken> more{{"aa"}, {"Ġa"}, {"on"}, {"<end>", TokenType::kControl}};
  for (const char* pre : {"gpt-2", "llama-bpe", "qwen2", "deepseek-llm"}) {
    SCOPED_TRACE(pre);
    expect_the_same_from_many_threads(byte_bpe(more, {"a a", "Ġ a", "o n"}, pre));
  }
}

TEST(TokenizerThreads, Spm) {
  expect_the_same_from_many_threads(spm({{"a", TokenType::kNormal, -1},
                                         {"aa", TokenType::kNormal, -2},
                                         {"\xE2\x96\x81", TokenType::kNormal, -3},
                                         {"<end>", TokenType::kControl}}));
}

}  // namespace
}  // namespace hocket::test
