// Tokenizer::load on hand-made metadata: defaults, keys, roles by text, and every refusal.

#include <gtest/gtest.h>

#include "tokenizer/small_vocabulary.h"

namespace hocket::test {
namespace {

using Ids = std::vector<TokenId>;

std::unique_ptr<Tokenizer> loaded(const Metadata& metadata, const std::string& force_pre = "") {
  auto tokenizer = Tokenizer::load(metadata, {force_pre});
  if (!tokenizer) {
    ADD_FAILURE() << tokenizer.error().param << ": " << tokenizer.error().message;
    return nullptr;
  }
  return std::move(tokenizer).value();
}

void expect_refused(const Metadata& metadata, ErrorCode code, const std::string& param,
                    const std::string& force_pre = "") {
  const auto tokenizer = Tokenizer::load(metadata, {force_pre});
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.error().code, code) << tokenizer.error().message;
  EXPECT_EQ(tokenizer.error().param, param);
  EXPECT_FALSE(tokenizer.error().message.empty());
}

Metadata changed(Metadata metadata, const std::string& key, MetadataValue value) {
  metadata.set(key, std::move(value));
  return metadata;
}

Metadata without(const Metadata& metadata, const std::string& key) {
  Metadata out;
  for (const auto& [name, value] : metadata.entries())
    if (name != key) out.set(name, value);
  return out;
}

TEST(TokenizerLoad, KindsThatAreNotSupported) {
  for (const char* kind : {"bert", "t5", "rwkv", "plamo2", "no_vocab", "none", "", "GPT2"})
    expect_refused(vocabulary_of(kind, {{"a"}}), ErrorCode::kUnsupported, "tokenizer.ggml.model");
  expect_refused(without(byte_bpe({}, {}), "tokenizer.ggml.model"), ErrorCode::kBadModel, "tokenizer.ggml.model");
}

TEST(TokenizerLoad, PreTokenizerNames) {
  expect_refused(byte_bpe({}, {}, "something-new"), ErrorCode::kUnsupported, "tokenizer.ggml.pre");
  expect_refused(byte_bpe({}, {}), ErrorCode::kInvalid, "force_pre", "something-new");
  expect_refused(spm({}), ErrorCode::kInvalid, "force_pre", "gpt-2");
  EXPECT_EQ(loaded(byte_bpe({}, {}, "something-new"), "qwen2")->pre(), "qwen2");
  EXPECT_EQ(loaded(without(byte_bpe({}, {}), "tokenizer.ggml.pre"))->pre(), "default");
  EXPECT_EQ(loaded(spm({}))->pre(), "");
}

TEST(TokenizerLoad, DamagedTables) {
  const Metadata bpe = byte_bpe({}, {});
  expect_refused(without(bpe, "tokenizer.ggml.tokens"), ErrorCode::kBadModel, "tokenizer.ggml.tokens");
  expect_refused(without(bpe, "tokenizer.ggml.merges"), ErrorCode::kBadModel, "tokenizer.ggml.merges");
  expect_refused(without(spm({}), "tokenizer.ggml.scores"), ErrorCode::kBadModel, "tokenizer.ggml.scores");
  expect_refused(changed(bpe, "tokenizer.ggml.tokens", MetadataArray{std::vector<std::string>{}}), ErrorCode::kBadModel,
                 "tokenizer.ggml.tokens");
  expect_refused(changed(bpe, "tokenizer.ggml.tokens", int64_t{4}), ErrorCode::kBadModel, "tokenizer.ggml.tokens");
  expect_refused(changed(bpe, "tokenizer.ggml.token_type", MetadataArray{std::vector<int64_t>{1, 1}}),
                 ErrorCode::kBadModel, "tokenizer.ggml.token_type");
  expect_refused(changed(spm({}), "tokenizer.ggml.scores", MetadataArray{std::vector<double>{1}}), ErrorCode::kBadModel,
                 "tokenizer.ggml.scores");
  expect_refused(changed(bpe, "tokenizer.ggml.add_bos_token", int64_t{1}), ErrorCode::kBadModel,
                 "tokenizer.ggml.add_bos_token");
  expect_refused(changed(bpe, "tokenizer.ggml.bos_token_id", std::string("1")), ErrorCode::kBadModel,
                 "tokenizer.ggml.bos_token_id");
  expect_refused(byte_bpe({{"ab"}, {"ab"}}, {}), ErrorCode::kBadModel, "tokenizer.ggml.tokens");
  for (const char* merge : {"", "a", "ab", " ", "a "})
    expect_refused(byte_bpe({}, {merge}), ErrorCode::kBadModel, "tokenizer.ggml.merges");
  expect_refused(byte_bpe({{"xyz", static_cast<TokenType>(9)}}, {}), ErrorCode::kBadModel, "tokenizer.ggml.token_type");
}

TEST(TokenizerLoad, EmptyTextsGetAName) {
  const auto tokenizer = loaded(byte_bpe({{""}, {""}}, {}));
  EXPECT_EQ(tokenizer->text(256), "[EMPTY_256]");
  EXPECT_EQ(tokenizer->find("[EMPTY_257]"), 257);
}

TEST(TokenizerLoad, DefaultsOfTheKinds) {
  const auto bpe = loaded(byte_bpe({}, {}));
  EXPECT_EQ(bpe->special().bos, 11);
  EXPECT_EQ(bpe->special().eos, 11);
  EXPECT_EQ(bpe->special().unk, kNoToken);
  EXPECT_FALSE(bpe->special().add_bos);
  EXPECT_TRUE(loaded(byte_bpe({}, {}, "llama-bpe"))->special().add_bos);
  EXPECT_FALSE(
      loaded(changed(byte_bpe({}, {}, "llama-bpe"), "tokenizer.ggml.add_bos_token", false))->special().add_bos);
  EXPECT_EQ(loaded(byte_bpe({}, {}, "glm4"))->special().bos, kNoToken);
  const auto llama = loaded(spm({}));
  EXPECT_EQ(llama->special().bos, 1);
  EXPECT_EQ(llama->special().eos, 2);
  EXPECT_EQ(llama->special().unk, 0);
  EXPECT_TRUE(llama->special().add_bos);
  EXPECT_FALSE(llama->special().add_eos);
}

TEST(TokenizerLoad, IdsOutsideTheVocabularyAreIgnored) {
  Metadata metadata = byte_bpe({}, {});
  metadata.set("tokenizer.ggml.eot_token_id", int64_t{256});
  metadata.set("tokenizer.ggml.bos_token_id", int64_t{-1});
  metadata.set("tokenizer.ggml.suppress_tokens", MetadataArray{std::vector<int64_t>{7, -2, 300, 3, 7}});
  const auto tokenizer = loaded(metadata);
  EXPECT_EQ(tokenizer->special().eot, kNoToken);
  EXPECT_EQ(tokenizer->special().bos, 11);
  EXPECT_EQ(tokenizer->suppressed(), (Ids{3, 7}));
}

TEST(TokenizerLoad, OldNamesOfFillInTheMiddleKeys) {
  Metadata metadata = byte_bpe({}, {});
  metadata.set("tokenizer.ggml.prefix_token_id", int64_t{20});
  metadata.set("tokenizer.ggml.suffix_token_id", int64_t{21});
  metadata.set("tokenizer.ggml.fim_suf_token_id", int64_t{22});
  const auto tokenizer = loaded(metadata);
  EXPECT_EQ(tokenizer->special().fim_prefix, 20);
  EXPECT_EQ(tokenizer->special().fim_suffix, 22);
}

TEST(TokenizerRoles, FoundByTextAndMadeControl) {
  Metadata metadata = byte_bpe({{"<|endoftext|>"}, {"<|im_end|>"}, {"<|fim_prefix|>"}, {"<|fim_pad|>"}, {"[EOS]"}}, {});
  metadata.set("tokenizer.ggml.eos_token_id", int64_t{256});
  const auto tokenizer = loaded(metadata);
  EXPECT_EQ(tokenizer->special().eot, 257);  // not the end of text, which is EOS already
  EXPECT_EQ(tokenizer->special().fim_prefix, 258);
  EXPECT_EQ(tokenizer->special().fim_pad, 259);
  EXPECT_EQ(tokenizer->end_of_generation(), (Ids{256, 257, 259, 260}));
  EXPECT_TRUE(tokenizer->is_end_of_generation(260));
  EXPECT_FALSE(tokenizer->is_end_of_generation(258));
  for (TokenId id = 256; id <= 260; ++id) EXPECT_EQ(tokenizer->type(id), TokenType::kControl) << id;
  EXPECT_EQ(*tokenizer->encode("a[EOS]", {false, true}), (Ids{'a', 260}));
  EXPECT_EQ(tokenizer->encode("a[EOS]", {false, false})->size(), 6u);
  EXPECT_EQ(tokenizer->piece(260), "");
  EXPECT_EQ(tokenizer->piece(260, true), "[EOS]");
}

TEST(TokenizerRoles, KeysComeBeforeTexts) {
  Metadata metadata = byte_bpe({{"<|eot_id|>"}, {"my_end"}}, {});
  metadata.set("tokenizer.ggml.eot_token_id", int64_t{257});
  const auto tokenizer = loaded(metadata);
  EXPECT_EQ(tokenizer->special().eot, 257);
  EXPECT_EQ(tokenizer->end_of_generation(), (Ids{11, 256, 257}));
}

TEST(TokenizerRoles, HarmonyMessagesStayVisible) {
  const TokenType control = TokenType::kControl;
  Metadata metadata = byte_bpe({{"<|return|>", control},
                                {"<|call|>", control},
                                {"<|end|>", control},
                                {"<|channel|>", control},
                                {"<|message|>", control},
                                {"<|start|>", control}},
                               {}, "gpt-4o");
  metadata.set("tokenizer.ggml.eos_token_id", int64_t{256});
  const auto tokenizer = loaded(metadata);
  EXPECT_EQ(tokenizer->end_of_generation(), (Ids{256, 257}));
  EXPECT_EQ(tokenizer->decode(*tokenizer->encode("<|start|>x<|channel|>y<|message|>z<|end|>", {false, true})),
            "<|start|>x<|channel|>y<|message|>z<|end|>");
}

TEST(TokenizerRoles, SolarAndGemma4) {
  const auto solar = loaded(byte_bpe({{"<|calls|>"}, {"<|flush|>"}, {"<|end|>"}}, {}, "solar-open"));
  EXPECT_EQ(solar->end_of_generation(), (Ids{11, 256, 257}));
  EXPECT_EQ(solar->type(258), TokenType::kUserDefined);
  const auto gemma = loaded(byte_bpe({{"<|tool_response>"}, {"</s>", TokenType::kUserDefined}}, {}));
  EXPECT_EQ(gemma->end_of_generation(), (Ids{11, 256}));
  EXPECT_EQ(gemma->type(257), TokenType::kNormal);
}

}  // namespace
}  // namespace hocket::test
