// encode(), piece() and decode() on hand-made vocabularies, where every id can be worked out on paper.

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "tokenizer/small_vocabulary.h"

namespace hocket::test {
namespace {

using Ids = std::vector<TokenId>;

std::unique_ptr<Tokenizer> loaded(const Metadata& metadata) {
  auto tokenizer = Tokenizer::load(metadata);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return tokenizer.ok() ? std::move(tokenizer).value() : nullptr;
}

Ids plain(const Tokenizer& tokenizer, std::string_view text) {
  return *tokenizer.encode(text, {false, false});
}

TEST(ByteBpe, MergesByRankThenFromTheLeft) {
  const auto tokenizer = loaded(byte_bpe({{"ab"}, {"bc"}, {"aa"}, {"Ġa"}}, {"b c", "a b", "a a", "Ġ a"}));
  EXPECT_EQ(plain(*tokenizer, "abc"), (Ids{'a', 257}));
  EXPECT_EQ(plain(*tokenizer, "aaab"), (Ids{258, 256})) << "a b comes before a a";
  EXPECT_EQ(plain(*tokenizer, "aaa"), (Ids{258, 'a'}));
  EXPECT_EQ(plain(*tokenizer, "b a"), (Ids{'b', 259}));
  EXPECT_EQ(plain(*tokenizer, ""), Ids{});
}

TEST(ByteBpe, OfARepeatedMergeTheFirstCounts) {
  const auto tokenizer = loaded(byte_bpe({{"ab"}, {"bc"}}, {"a b", "b c", "a b"}));
  EXPECT_EQ(plain(*tokenizer, "abc"), (Ids{256, 'c'}));
}

TEST(ByteBpe, MergesThroughTextsThatAreNoTokens) {
  const auto tokenizer = loaded(byte_bpe({{"abc"}}, {"a b", "ab c"}));
  EXPECT_EQ(plain(*tokenizer, "abc"), (Ids{256}));
  EXPECT_EQ(plain(*tokenizer, "ab"), (Ids{'a', 'b'})) << "a merged text without a token falls back to its bytes";
}

TEST(ByteBpe, IgnoreMergesTakesAWholePiece) {
  const std::vector<SmallToken> tokens{{"abc"}, {"ab"}};
  EXPECT_EQ(plain(*loaded(byte_bpe(tokens, {"a b"}, "llama-bpe")), "abc"), (Ids{256}));
  EXPECT_EQ(plain(*loaded(byte_bpe(tokens, {"a b"}, "qwen2")), "abc"), (Ids{257, 'c'}));
}

TEST(ByteBpe, BytesThatAreNoUtf8KeepTheirTokens) {
  const auto tokenizer = loaded(byte_bpe({}, {}));
  const std::string text = "a\xFF\xC3 \xE2\x96 \xED\xA0\x80 \xF5\x80 b\xC0\x80";
  Ids want;
  for (const char c : text) want.push_back(static_cast<unsigned char>(c));
  EXPECT_EQ(plain(*tokenizer, text), want);
  EXPECT_EQ(tokenizer->decode(want), text);
}

TEST(ByteBpe, BeginningAndEnd) {
  Metadata metadata = byte_bpe({{"<b>", TokenType::kControl}, {"<e>", TokenType::kControl}}, {});
  metadata.set("tokenizer.ggml.bos_token_id", int64_t{256});
  metadata.set("tokenizer.ggml.eos_token_id", int64_t{257});
  metadata.set("tokenizer.ggml.add_bos_token", true);
  metadata.set("tokenizer.ggml.add_eos_token", true);
  const auto tokenizer = loaded(metadata);
  EXPECT_EQ(*tokenizer->encode("x", {true, false}), (Ids{256, 'x', 257}));
  EXPECT_EQ(*tokenizer->encode("", {true, false}), (Ids{256, 257}));
  EXPECT_EQ(*tokenizer->encode("<b>x", {true, true}), (Ids{256, 256, 'x', 257})) << "a second one is kept";
  EXPECT_EQ(*tokenizer->encode("x", {false, false}), (Ids{'x'}));
}

TEST(SpecialTokensInText, ControlOnlyWhenAskedUserDefinedAlways) {
  const auto tokenizer = loaded(
      byte_bpe({{"<c>", TokenType::kControl}, {"<u>", TokenType::kUserDefined}, {"<?>", TokenType::kUnknown}}, {}));
  EXPECT_EQ(*tokenizer->encode("<c><u><?>", {false, true}), (Ids{256, 257, 258}));
  EXPECT_EQ(*tokenizer->encode("<c><u><?>", {false, false}), (Ids{'<', 'c', '>', 257, '<', '?', '>'}));
  EXPECT_EQ(tokenizer->decode(Ids{256, 257, 258}), "<u>");
  EXPECT_EQ(tokenizer->decode(Ids{256, 257, 258}, true), "<c><u><?>");
}

TEST(SpecialTokensInText, WhiteSpaceAroundSomeModelsTokens) {
  Metadata phi = spm({{"<|user|>", TokenType::kControl}, {"<|endoftext|>", TokenType::kControl}, {"\u2581"}, {"a"}});
  phi.set("general.name", std::string("Phi-3 mini"));
  phi.set("tokenizer.ggml.add_space_prefix", false);
  const TokenId user = kFirstSpmToken, end = user + 1, space = user + 2, a = user + 3;
  EXPECT_EQ(*loaded(phi)->encode("<|user|> \n a<|endoftext|> a", {false, true}), (Ids{user, a, end, space, a}));
  phi.set("general.name", std::string("Llama 2"));
  EXPECT_EQ(*loaded(phi)->encode("<|user|> a", {false, true}), (Ids{user, space, a}));
  const auto jina = loaded(byte_bpe({{"<mask>", TokenType::kControl}}, {}, "jina-v2-de"));
  EXPECT_EQ(*jina->encode("a <mask> b", {false, true}), (Ids{'a', 256, ' ', 'b'}));
  const auto modern = loaded(byte_bpe({{"[MASK]", TokenType::kControl}}, {}, "modern-bert"));
  EXPECT_EQ(*modern->encode("a [MASK]", {false, true}), (Ids{'a', 256}));
}

TEST(Spm, BestScoreFirstThenFromTheLeft) {
  const auto tokenizer = loaded(spm({{"\u2581", TokenType::kNormal, -9},
                                     {"a", TokenType::kNormal, -9},
                                     {"b", TokenType::kNormal, -9},
                                     {"ab", TokenType::kNormal, -2},
                                     {"ba", TokenType::kNormal, -1},
                                     {"aa", TokenType::kNormal, -3},
                                     {"\u2581a", TokenType::kNormal, -8}}));
  const TokenId space = kFirstSpmToken, a = space + 1, b = space + 2, ab = space + 3, ba = space + 4, aa = space + 5,
                sa = space + 6;
  EXPECT_EQ(plain(*tokenizer, "aba"), (Ids{sa, ba}));
  EXPECT_EQ(plain(*tokenizer, "aaa"), (Ids{space, aa, a})) << "the left pair of two equal ones";
  EXPECT_EQ(plain(*tokenizer, "b ab"), (Ids{space, b, space, ab}));
}

TEST(Spm, TokensMayReachAcrossASpace) {
  const auto tokenizer =
      loaded(spm({{"\u2581"}, {"a"}, {"b"}, {"\u2581b"}, {"a\u2581b", TokenType::kNormal, 5}, {"\u2581\u2581"}}));
  const TokenId space = kFirstSpmToken, a = space + 1, sb = space + 3, across = space + 4, two = space + 5;
  EXPECT_EQ(plain(*tokenizer, "a b"), (Ids{space, across}));
  EXPECT_EQ(plain(*tokenizer, "b b a a b"), (Ids{sb, sb, space, a, space, across}));
  EXPECT_EQ(plain(*tokenizer, "b  a"), (Ids{sb, two, a}));
  EXPECT_EQ(plain(*tokenizer, "ba"), (Ids{sb, a}));
  EXPECT_EQ(plain(*tokenizer, "b b b"), (Ids{sb, sb, sb}));
}

TEST(Spm, CharactersThatOnlyMeetInsideATokenStillMerge) {
  const auto tokenizer = loaded(spm({{"xy"}}));  // neither x nor y is a token
  const TokenId space_byte = kFirstSpmByte + 0xE2;
  EXPECT_EQ(plain(*tokenizer, "xy"), (Ids{space_byte, kFirstSpmByte + 0x96, kFirstSpmByte + 0x81, kFirstSpmToken}));
}

TEST(Spm, BytesWhereNoTokenFits) {
  const auto tokenizer = loaded(spm({{"\u2581"}}));
  EXPECT_EQ(plain(*tokenizer, "é\xFF"),
            (Ids{kFirstSpmToken, kFirstSpmByte + 0xC3, kFirstSpmByte + 0xA9, kFirstSpmByte + 0xFF}));
  EXPECT_EQ(tokenizer->decode(plain(*tokenizer, "é\xFF")), "é\xFF");
}

TEST(Spm, SpaceBeforeTextThatFollowsASpecialToken) {
  Metadata metadata = spm({{"\u2581"}, {"a"}, {"<x>", TokenType::kUserDefined}});
  const TokenId space = kFirstSpmToken, a = space + 1, x = space + 2;
  EXPECT_EQ(*loaded(metadata)->encode("a<x>a", {true, false}), (Ids{1, space, a, x, space, a}));
  EXPECT_EQ(plain(*loaded(metadata), ""), Ids{});
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  EXPECT_EQ(*loaded(metadata)->encode("a<x>a", {true, false}), (Ids{1, a, x, a}));
}

TEST(Spm, DecodeDropsOneSpaceAtTheBeginning) {
  Metadata metadata = spm({{"\u2581"}, {"a"}});
  const TokenId space = kFirstSpmToken, a = space + 1;
  EXPECT_EQ(loaded(metadata)->decode(Ids{1, space, a}), "a");
  EXPECT_EQ(loaded(metadata)->decode(Ids{space, space, a}), " a");
  EXPECT_EQ(loaded(metadata)->decode(Ids{a, space}), "a ");
  EXPECT_EQ(loaded(metadata)->decode(Ids{1, space, a}, true), "<s>a");
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  EXPECT_EQ(loaded(metadata)->decode(Ids{1, space, a}), " a");
}

TEST(RawBpe, LinesAndNewlineRuns) {
  std::vector<SmallToken> tokens{
      {"<unk>", TokenType::kUnknown}, {"a"}, {"\u2581"}, {"\u2581a"}, {"a\u2581a"}, {"\n"}, {"\n\n\n"},
      {"<0x62>", TokenType::kByte}};
  Metadata metadata = vocabulary_of("gemma4", tokens);
  metadata.set("tokenizer.ggml.merges", MetadataArray{std::vector<std::string>{"\u2581 a", "a \u2581a"}});
  metadata.set("tokenizer.ggml.unknown_token_id", int64_t{0});
  metadata.set("tokenizer.ggml.add_bos_token", false);
  const auto tokenizer = loaded(metadata);
  EXPECT_EQ(plain(*tokenizer, "a a\n\n\n a\n\nb"), (Ids{4, 6, 3, 5, 5, 7}));
  EXPECT_EQ(plain(*tokenizer, "c"), (Ids{0})) << "no token, no byte token";
  EXPECT_EQ(tokenizer->decode(plain(*tokenizer, " a ab\n")), " a ab\n");
}

TEST(Pieces, UnusedAndOutsideIds) {
  const auto tokenizer = loaded(spm({{"gone", TokenType::kUnused}, {"odd", TokenType::kByte}}));
  EXPECT_EQ(tokenizer->piece(kFirstSpmToken, true), "");
  EXPECT_EQ(tokenizer->piece(kFirstSpmToken + 1), "odd") << "a byte token that names no byte is text";
  EXPECT_EQ(tokenizer->piece(kFirstSpmByte + 'A'), "A");
  EXPECT_EQ(tokenizer->piece(-1), "");
  EXPECT_EQ(tokenizer->piece(1 << 30), "");
  EXPECT_FALSE(tokenizer->is_end_of_generation(-1));
}

TEST(DetokenizeStream, HoldsBackUnfinishedCharacters) {
  const auto tokenizer = loaded(byte_bpe({}, {}));
  DetokenizeStream stream(*tokenizer);
  EXPECT_EQ(stream.push('a'), "a");
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push(0x9F), "");
  EXPECT_EQ(stream.push(0x98), "");
  EXPECT_EQ(stream.push(0x80), "😀");
  EXPECT_EQ(stream.push(0xC3), "");
  EXPECT_EQ(stream.push('b'),
            "\uFFFD"
            "b")
      << "the character cannot be finished any more";
  EXPECT_EQ(stream.push(0x80), "\uFFFD");
  EXPECT_EQ(stream.push(0xE2), "");
  EXPECT_EQ(stream.push(0x96), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(DetokenizeStream, ControlTokensOnlyWhenAsked) {
  const auto tokenizer = loaded(byte_bpe({{"<c>", TokenType::kControl}}, {}));
  EXPECT_EQ(DetokenizeStream(*tokenizer).push(256), "");
  EXPECT_EQ(DetokenizeStream(*tokenizer, true).push(256), "<c>");
}

}  // namespace
}  // namespace hocket::test
