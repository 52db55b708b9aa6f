// Constraints over a real vocabulary: whatever the masks let through must parse and validate.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "support/constraint_walk.h"
#include "support/json_schema_validator.h"
#include "tokenizer/grammar.h"
#include "weights/gguf.h"

namespace hocket {
namespace {

const Tokenizer* real_tokenizer() {
  static const std::unique_ptr<Tokenizer> tokenizer = []() -> std::unique_ptr<Tokenizer> {
    const char* path = std::getenv("HOCKET_TEST_SMOLLM2");
    if (!path || !*path) return nullptr;
    auto file = GgufFile::open(path);
    EXPECT_TRUE(file.ok()) << (file ? "" : file.error().message);
    if (!file) return nullptr;
    auto loaded = Tokenizer::load((*file)->metadata());
    EXPECT_TRUE(loaded.ok()) << (loaded ? "" : loaded.error().message);
    return loaded ? std::move(loaded).value() : nullptr;
  }();
  return tokenizer.get();
}

TEST(GrammarReal, RandomWalksOverRealTokensValidate) {
  const Tokenizer* tokenizer = real_tokenizer();
  if (!tokenizer) GTEST_SKIP() << "HOCKET_TEST_SMOLLM2 is not set";
  auto compiler = GrammarCompiler::create(*tokenizer, tokenizer->size());
  ASSERT_TRUE(compiler.ok());
  const uint32_t seed = 17;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::vector<std::string> schemas{
      R"({"type":"object","properties":{"city":{"type":"string","maxLength":30},"degrees":{"type":"number"},
          "tags":{"type":"array","items":{"enum":["warm","cold"]},"maxItems":3}},"required":["city","degrees"]})",
      R"({"type":"object","properties":{"kind":{"const":"ok"},"n":{"type":"integer","minimum":1,"maximum":9}},
          "required":["kind","n"],"additionalProperties":false})",
      R"({"anyOf":[{"type":"string","pattern":"^[A-Z]{3}-[0-9]{2}$"},{"type":"array","items":{"type":"boolean"}}]})",
      R"({"type":"object","additionalProperties":{"type":["integer","null"]}})",
  };
  for (const std::string& schema : schemas) {
    SCOPED_TRACE(schema);
    auto made = (*compiler)->json_schema(schema, "schema");
    ASSERT_TRUE(made.ok()) << made.error().message;
    const fake::SchemaValidator validator(nlohmann::json::parse(schema));
    int n_finished = 0;
    for (int round = 0; round < 20; ++round) {
      const auto text = fake::random_walk(*tokenizer, tokenizer->size(), *(*made)->clone(), random, 300);
      if (!text) continue;
      ++n_finished;
      const auto value = nlohmann::json::parse(*text, nullptr, false);
      ASSERT_FALSE(value.is_discarded()) << *text;
      ASSERT_EQ(validator.check(value), "") << *text;
    }
    EXPECT_GE(n_finished, 5);
  }
}

TEST(GrammarReal, TextOfAnEncodedAnswerPasses) {
  const Tokenizer* tokenizer = real_tokenizer();
  if (!tokenizer) GTEST_SKIP() << "HOCKET_TEST_SMOLLM2 is not set";
  auto compiler = GrammarCompiler::create(*tokenizer, tokenizer->size() + 100);
  ASSERT_TRUE(compiler.ok());
  auto made = (*compiler)->json_object();
  ASSERT_TRUE(made.ok());
  const auto ids =
      tokenizer->encode(R"({"name": "Zoë 😀", "list": [1, -2.5, null], "nested": {"ok": true}})", {false, false});
  ASSERT_TRUE(ids.ok());
  std::vector<uint32_t> mask((tokenizer->size() + 100 + 31) / 32);
  for (const TokenId id : *ids) {
    ASSERT_TRUE(*(*made)->allowed(mask));
    ASSERT_NE(mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1, 0u) << tokenizer->piece(id);
    ASSERT_TRUE((*made)->accept(id).ok());
  }
  EXPECT_TRUE((*made)->complete());
}

}  // namespace
}  // namespace hocket
