// The vocabularies of the two pinned models: ids with and without special tokens, and text back.

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/utf8.h"
#include "tokenizer/vocabulary_files.h"

namespace hocket::test {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<TokenId>;

std::string joined(const Tokenizer& tokenizer, const Ids& ids) {
  std::string out;
  for (const TokenId id : ids) out += tokenizer.piece(id, true);
  return out;
}

std::string streamed(const Tokenizer& tokenizer, const Ids& ids) {
  DetokenizeStream stream(tokenizer, true);
  std::string out;
  for (const TokenId id : ids) {
    const std::string part = stream.push(id);
    EXPECT_TRUE(is_valid_utf8(part));
    out += part;
  }
  return out + stream.finish();
}

void expect_row(const Tokenizer& tokenizer, const Json& row) {
  const std::string text = golden_bytes(row.at("text"));
  SCOPED_TRACE(text);
  const auto field = [&](const char* name, const char* otherwise) {
    return row.contains(name) ? row.at(name) : row.at(otherwise);
  };
  const Ids ids = row.at("ids").get<Ids>();
  const Ids plain = field("ids_plain", "ids").get<Ids>();
  EXPECT_EQ(must_encode(tokenizer, text, {false, true}), ids);
  EXPECT_EQ(must_encode(tokenizer, text, {true, true}), row.at("ids_special").get<Ids>());
  EXPECT_EQ(must_encode(tokenizer, text, {false, false}), plain);
  EXPECT_EQ(must_encode(tokenizer, text, {true, false}), field("ids_plain_special", "ids_special").get<Ids>());
  EXPECT_EQ(tokenizer.decode(ids), golden_bytes(row.at("detok")));
  EXPECT_EQ(tokenizer.decode(ids, true), golden_bytes(row.at("detok_rendered")));
  EXPECT_EQ(tokenizer.decode(plain), golden_bytes(field("detok_plain", "detok")));
  EXPECT_EQ(tokenizer.decode(plain, true), golden_bytes(field("detok_plain_rendered", "detok_rendered")));
  EXPECT_EQ(joined(tokenizer, ids), golden_bytes(field("pieces_joined_rendered", "detok_rendered")));
  if (is_valid_utf8(joined(tokenizer, ids))) {
    EXPECT_EQ(streamed(tokenizer, ids), joined(tokenizer, ids));
  }
}

void expect_golden(const char* variable, const char* golden_name) {
  const char* path = std::getenv(variable);
  if (path == nullptr) GTEST_SKIP() << variable << " is not set to the path of the model file";
  const Json golden = read_golden(golden_name);
  const auto tokenizer = must_open_tokenizer(path);
  ASSERT_NE(tokenizer, nullptr);
  const Json& roles = golden.at("vocabulary");
  EXPECT_EQ(tokenizer->size(), roles.at("n_vocab").get<std::size_t>());
  EXPECT_EQ(tokenizer->special().bos, roles.at("bos").get<TokenId>());
  EXPECT_EQ(tokenizer->special().eos, roles.at("eos").get<TokenId>());
  EXPECT_EQ(tokenizer->special().eot, roles.at("eot").get<TokenId>());
  EXPECT_EQ(tokenizer->special().pad, roles.at("pad").get<TokenId>());
  EXPECT_EQ(tokenizer->special().add_bos, roles.at("add_bos").get<bool>());
  EXPECT_EQ(tokenizer->special().add_eos, roles.at("add_eos").get<bool>());
  EXPECT_EQ(tokenizer->end_of_generation(), roles.at("eog").get<Ids>());
  ASSERT_EQ(golden.at("rows").size(), 224u);
  for (const Json& row : golden.at("rows")) expect_row(*tokenizer, row);
}

TEST(GoldenModels, SmolLM2) {
  expect_golden("HOCKET_TEST_SMOLLM2", "tokenizer-smollm2.json");
}
TEST(GoldenModels, Gemma3) {
  expect_golden("HOCKET_TEST_GEMMA3", "tokenizer-gemma3.json");
}

}  // namespace
}  // namespace hocket::test
