// 224 texts under the real vocabularies of the llama.cpp source archive, read in place.

#include <gtest/gtest.h>

#include <set>

#include "tokenizer/vocabulary_files.h"

namespace hocket::test {
namespace {

using Json = nlohmann::json;

void expect_roles(const Tokenizer& tokenizer, const Json& vocabulary) {
  EXPECT_EQ(tokenizer.size(), vocabulary.at("n_vocab").get<std::size_t>());
  EXPECT_EQ(tokenizer.special().bos, vocabulary.at("bos").get<TokenId>());
  EXPECT_EQ(tokenizer.special().eos, vocabulary.at("eos").get<TokenId>());
  EXPECT_EQ(tokenizer.special().eot, vocabulary.at("eot").get<TokenId>());
  EXPECT_EQ(tokenizer.special().add_bos, vocabulary.at("add_bos").get<bool>());
  EXPECT_EQ(tokenizer.special().add_eos, vocabulary.at("add_eos").get<bool>());
  EXPECT_EQ(tokenizer.end_of_generation(), vocabulary.at("eog").get<std::vector<TokenId>>());
}

void expect_texts(const Tokenizer& tokenizer, const std::vector<std::string>& texts, const Json& golden) {
  EXPECT_EQ(must_encode(tokenizer, "Hello world", {true, true}),
            golden.at("hello_world_special").get<std::vector<TokenId>>());
  ASSERT_EQ(golden.at("ids").size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto want = golden.at("ids")[i].get<std::vector<TokenId>>();
    const auto got = must_encode(tokenizer, texts[i], {false, true});
    EXPECT_EQ(got, want) << "text " << i << ": " << texts[i] << "\n got " << shown(tokenizer, got) << "\nwant "
                         << shown(tokenizer, want);
    const auto plain = golden.at("ids_plain").find(std::to_string(i));
    const auto want_plain = plain == golden.at("ids_plain").end() ? want : plain->get<std::vector<TokenId>>();
    const auto got_plain = must_encode(tokenizer, texts[i], {false, false});
    EXPECT_EQ(got_plain, want_plain) << "text " << i << " without special tokens: " << texts[i] << "\n got "
                                     << shown(tokenizer, got_plain) << "\nwant " << shown(tokenizer, want_plain);
  }
}

TEST(GoldenVocabularies, AllTexts) {
  const Json golden = read_golden("tokenizer-vocabs.json");
  const auto texts = golden.at("texts").get<std::vector<std::string>>();
  const std::set<std::string> not_supported{"bert", "t5"};
  std::size_t n_tested = 0, n_refused = 0;
  for (const Json& vocabulary : golden.at("vocabularies")) {
    const auto file = vocabulary.at("file").get<std::string>();
    const auto kind = vocabulary.at("model").get<std::string>();
    SCOPED_TRACE(file);
    if (not_supported.count(kind) > 0) {
      const auto refused = open_tokenizer(llama_vocabulary(file));
      ASSERT_FALSE(refused.ok());
      EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
      EXPECT_EQ(refused.error().param, "tokenizer.ggml.model");
      ++n_refused;
      continue;
    }
    const auto tokenizer = must_open_tokenizer(llama_vocabulary(file));
    ASSERT_NE(tokenizer, nullptr);
    EXPECT_EQ(tokenizer->kind(), kind);
    expect_roles(*tokenizer, vocabulary.at("vocabulary"));
    expect_texts(*tokenizer, texts, vocabulary);
    ++n_tested;
  }
  EXPECT_EQ(n_tested, 17u);
  EXPECT_EQ(n_refused, 2u);
}

}  // namespace
}  // namespace hocket::test
