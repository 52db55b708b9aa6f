#include <gtest/gtest.h>

#include "music/cond/condition_encoder.h"
#include "music/fsq/fsq_detokenizer.h"
#include "music/fsq/fsq_tokenizer.h"
#include "music/goldens.h"
#include "music/model_file.h"
#include "music/text_encoder/text_encoder.h"

namespace hocket {
namespace {

using test::Golden;
using test::relative_error;
using test::value_or_fail;

TEST(TextEncoder, GivesTheGoldenStatesOfEveryPosition) {
  for (const char* name : {"text-1", "text-2"}) {
    const Golden golden(name);
    const auto encoder = value_or_fail(TextEncoder::load(
        value_or_fail(open_music_file(golden.model(), MusicFileKind::kTextEncoder)), test::test_compute()));
    Taps taps;
    const auto states = value_or_fail(encoder->encode(golden.ints("text_ids"), CancelToken(), &taps));
    EXPECT_LE(relative_error(states, golden.floats("text_hidden")), golden.tolerance("text_hidden"));
    for (int il = 0; il < 3; ++il) {
      const std::string layer = "layer" + std::to_string(il);
      EXPECT_LE(relative_error(taps.at("text_" + layer), golden.floats(layer)), golden.tolerance(layer)) << layer;
    }
    EXPECT_EQ(value_or_fail(encoder->embed(golden.ints("lyric_ids"), CancelToken())), golden.floats("lyric_embed"));
  }
}

TEST(TextEncoder, RefusesIdsItHasNot) {
  const auto encoder = value_or_fail(TextEncoder::load(
      value_or_fail(open_music_file(test::music_data("models/text-encoder.gguf"), MusicFileKind::kTextEncoder)),
      test::test_compute()));
  for (const std::vector<int32_t>& ids : {std::vector<int32_t>{}, {-1}, {151'644}, std::vector<int32_t>(8193, 1)})
    EXPECT_FALSE(encoder->encode(ids, CancelToken()).ok());
  const CancelToken cancel;
  cancel.cancel();
  const std::vector<int32_t> ids{1, 2, 3};
  const auto cancelled = encoder->encode(ids, cancel);
  ASSERT_FALSE(cancelled.ok());
  EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);
}

TEST(ConditionEncoder, GivesTheGoldenConditioning) {
  for (const char* name : {"cond-silence", "cond-timbre", "cond-cls"}) {
    const Golden golden(name);
    const auto encoder =
        value_or_fail(ConditionEncoder::load(value_or_fail(DitFile::open(golden.model())), test::test_compute()));
    Taps taps;
    const auto text = golden.floats("text_hidden"), lyrics = golden.floats("lyric_embed");
    const auto timbre = golden.floats("timbre");
    const auto packed = value_or_fail(encoder->encode({text, lyrics, timbre}, CancelToken(), &taps));
    EXPECT_EQ(packed.size(), golden.floats("enc").size());
    EXPECT_LE(relative_error(packed, golden.floats("enc")), golden.tolerance("enc")) << name;
    EXPECT_GE(taps.size(), 3u);
    test::expect_taps(golden, taps);
  }
}

TEST(FsqLevels, NumbersEveryRowAsTheGolden) {
  const Golden golden("fsq-index");
  const FsqLevels levels({8, 8, 8, 5, 5, 5});
  const auto x = golden.floats("x");
  const auto codes = golden.ints("codes");
  for (std::size_t i = 0; i < codes.size(); ++i) EXPECT_EQ(levels.code(std::span(x).subspan(6 * i, 6)), codes[i]) << i;
}

TEST(FsqLevels, EveryCodeComesBackFromItsValues) {
  const FsqLevels levels({8, 8, 8, 5, 5, 5});
  ASSERT_EQ(levels.n_codes(), 64'000);
  std::vector<float> values(6);
  for (int64_t code = 0; code < levels.n_codes(); ++code) {
    levels.values(code, values);
    for (float& v : values) v = std::atanh(v * 0.9999f);
    ASSERT_EQ(levels.code(values), code);
  }
  levels.values(64'000 + 12'345, values);
  EXPECT_NEAR(values[0], -0.714286f, 1e-6f);
  EXPECT_NEAR(values[5], -1.0f, 1e-6f);
  const float nan = std::nanf("");
  EXPECT_EQ(levels.code(std::vector<float>{nan, nan, nan, nan, nan, nan}), 0);
}

TEST(Fsq, DetokenisesLikeTheGolden) {
  const Golden golden("fsq-detokenize");
  const auto fsq =
      value_or_fail(FsqDetokenizer::load(value_or_fail(DitFile::open(golden.model())), test::test_compute()));
  Taps taps;
  const auto frames = value_or_fail(fsq->decode(golden.ints("codes"), CancelToken(), &taps));
  EXPECT_EQ(frames.size(), golden.floats("frames").size());
  EXPECT_LE(relative_error(frames, golden.floats("frames")), golden.tolerance("frames"));
  test::expect_taps(golden, taps);
  const auto negative = fsq->decode(std::vector<int32_t>{3, -1}, CancelToken());
  ASSERT_FALSE(negative.ok());
  EXPECT_EQ(negative.error().param, "audio_codes");
}

TEST(Fsq, BlocksOfCodesDoNotTouchEachOther) {
  const auto fsq = value_or_fail(FsqDetokenizer::load(
      value_or_fail(DitFile::open(test::music_data("models/dit-turbo.gguf"))), test::test_compute()));
  std::vector<int32_t> codes(300);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<int32_t>(i * 211);
  const auto all = value_or_fail(fsq->decode(codes, CancelToken()));
  const auto last = value_or_fail(fsq->decode(std::span(codes).last(1), CancelToken()));
  EXPECT_LE(relative_error({all.end() - 320, all.end()}, last), 1e-5);
}

TEST(Fsq, TokenisesLikeTheGolden) {
  const Golden golden("fsq-tokenize");
  const auto fsq =
      value_or_fail(FsqTokenizer::load(value_or_fail(DitFile::open(golden.model())), test::test_compute()));
  Taps taps;
  EXPECT_EQ(value_or_fail(fsq->encode(golden.floats("latents"), CancelToken(), &taps)), golden.ints("codes"));
  test::expect_taps(golden, taps);
  EXPECT_FALSE(fsq->encode(std::vector<float>(), CancelToken()).ok());
  EXPECT_FALSE(fsq->encode(std::vector<float>(63), CancelToken()).ok());
}

}  // namespace
}  // namespace hocket
