// Properties that hold for any text, on real vocabularies of every kind.

#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/vocabulary_files.h"

namespace hocket::test {
namespace {

struct Vocabulary {
  const char* file;
  bool visible_spaces;  // U+2581 in the text comes back as a space
  bool every_byte;      // has a token for each of the 256 bytes
};

constexpr Vocabulary kVocabularies[] = {
    {"ggml-vocab-gpt-2.gguf", false, true},    {"ggml-vocab-llama-bpe.gguf", false, true},
    {"ggml-vocab-qwen2.gguf", false, true},    {"ggml-vocab-deepseek-llm.gguf", false, false},
    {"ggml-vocab-llama-spm.gguf", true, true}, {"ggml-vocab-gemma-4.gguf", true, true},
};

std::string random_characters(std::mt19937& random, std::size_t max_characters) {
  static const std::vector<std::pair<char32_t, char32_t>> ranges{
      {0, 0x7F},        {' ', ' '},         {' ', '~'},         {' ', '~'},       {'a', 'z'},        {'\n', '\n'},
      {0xA1, 0xFF},     {0x100, 0x24F},     {0x300, 0x36F},     {0x400, 0x4FF},   {0x600, 0x6FF},    {0x900, 0x97F},
      {0xE00, 0xE7F},   {0x2000, 0x206F},   {0x2190, 0x2BFF},   {0x3000, 0x30FF}, {0x4E00, 0x9FFF},  {0xAC00, 0xD7A3},
      {0xFE00, 0xFE0F}, {0x1F300, 0x1FAFF}, {0x20000, 0x2A6DF}, {0x100, 0xD7FF},  {0xE000, 0x10FFFF}};
  std::string text;
  for (std::size_t n = random() % max_characters; n > 0; --n) {
    const auto [first, last] = ranges[random() % ranges.size()];
    char32_t c = first + static_cast<char32_t>(random() % (last - first + 1));
    if (c == 0x2581) c = 'x';
    for (std::size_t times = random() % 8 == 0 ? 1 + random() % 12 : 1; times > 0; --times) append_utf8(text, c);
  }
  return text;
}

std::string random_bytes(std::mt19937& random, std::size_t max_bytes) {
  std::string text;
  for (std::size_t n = random() % max_bytes; n > 0; --n) text += static_cast<char>(random());
  return text;
}

// What a stream of the tokens must have given in all.
std::string repaired(const std::string& bytes) {
  const std::size_t n_open = incomplete_utf8_tail(bytes);
  return repair_utf8(std::string_view(bytes).substr(0, bytes.size() - n_open)) + (n_open > 0 ? "\uFFFD" : "");
}

void expect_round_trip(const Tokenizer& tokenizer, const std::string& text) {
  const auto ids = must_encode(tokenizer, text, {false, false});
  ASSERT_EQ(tokenizer.decode(ids, true), text);
  DetokenizeStream stream(tokenizer, true);
  std::string streamed, batch;
  for (const TokenId id : ids) {
    const std::string part = stream.push(id);
    ASSERT_TRUE(is_valid_utf8(part));
    streamed += part;
    batch += tokenizer.piece(id, true);
  }
  ASSERT_EQ(streamed + stream.finish(), repaired(batch));
}

TEST(RoundTrip, RandomTextAndBytes) {
  const unsigned seed = 424242;
  SCOPED_TRACE(seed);
  for (const Vocabulary& vocabulary : kVocabularies) {
    SCOPED_TRACE(vocabulary.file);
    const auto tokenizer = must_open_tokenizer(llama_vocabulary(vocabulary.file));
    ASSERT_NE(tokenizer, nullptr);
    std::mt19937 random(seed);
    for (int round = 0; round < 400; ++round) {
      expect_round_trip(*tokenizer, random_characters(random, 120));
      if (vocabulary.every_byte) expect_round_trip(*tokenizer, random_bytes(random, 120));
      if (HasFatalFailure()) return;
    }
  }
}

// Quadratic time would need minutes for each of these.
TEST(RoundTrip, LongTexts) {
  std::string word;
  std::mt19937 random(99);
  for (int i = 0; i < 100'000; ++i) word += static_cast<char>('a' + random() % 26);
  std::vector<std::string> texts{std::string(1 << 20, 'a'), std::string(1 << 18, ' '), std::string(1 << 18, '\n'),
                                 std::string(1 << 18, '='), std::string(1 << 18, '1'), word};
  texts.emplace_back();
  while (texts.back().size() < 1 << 18) texts.back() += "\u6F22";
  for (const Vocabulary& vocabulary : kVocabularies) {
    SCOPED_TRACE(vocabulary.file);
    const auto tokenizer = must_open_tokenizer(llama_vocabulary(vocabulary.file));
    ASSERT_NE(tokenizer, nullptr);
    for (const std::string& text : texts) {
      const auto ids = must_encode(*tokenizer, text, {false, true});
      ASSERT_EQ(tokenizer->decode(ids, true), text);
    }
  }
}

}  // namespace
}  // namespace hocket::test
