#include <gtest/gtest.h>

#include "music/goldens.h"
#include "music/model_file.h"
#include "music/vae/vae_decoder.h"
#include "music/vae/vae_encoder.h"

namespace hocket {
namespace {

using test::Golden;
using test::relative_error;
using test::value_or_fail;

// The golden arrays allow for half-precision convolutions; ours are F32.
constexpr double kTolerance = 1e-4;

std::shared_ptr<const GgufFile> vae_file() {
  return value_or_fail(open_music_file(test::music_data("models/vae.gguf"), MusicFileKind::kVae));
}

std::vector<float> planar(const StereoAudio& audio) {
  std::vector<float> samples = audio.left;
  samples.insert(samples.end(), audio.right.begin(), audio.right.end());
  return samples;
}

StereoAudio from_interleaved(const std::vector<float>& samples) {
  StereoAudio audio;
  for (std::size_t i = 0; i < samples.size(); i += 2) {
    audio.left.push_back(samples[i]);
    audio.right.push_back(samples[i + 1]);
  }
  return audio;
}

TEST(VaeTiles, FollowTheRuleAndItsExamples) {
  const Golden decode("vae-tiled"), encode("vae-encode");
  const auto expect = [](const std::vector<Tile>& tiles, const nlohmann::json& rows) {
    ASSERT_EQ(tiles.size(), rows.size());
    for (std::size_t i = 0; i < tiles.size(); ++i)
      EXPECT_EQ(tiles[i], (Tile{rows[i][0], rows[i][1], rows[i][2], rows[i][3]})) << i;
  };
  expect(make_tiles(40, 32, 12), decode.params()["tiles_32_12"]);
  expect(make_tiles(46'080, 20 * 1920, 8 * 1920), encode.params()["tiles_20_8"]);
  EXPECT_EQ(make_tiles(40, 40, 12), (std::vector<Tile>{{0, 40, 0, 40}}));
  EXPECT_EQ(make_tiles(3, 2, 12), (std::vector<Tile>{{0, 2, 0, 2}, {2, 3, 2, 3}}));  // no overlap fits
}

TEST(VaeDecoder, GivesTheGoldenAudioAndStages) {
  const Golden golden("vae-decode");
  const auto vae = value_or_fail(VaeDecoder::load(vae_file(), test::test_compute()));
  EXPECT_EQ(vae->samples_per_frame(), 1920);
  EXPECT_EQ(vae->n_channels(), 64);
  Taps taps;
  const auto audio =
      value_or_fail(vae->decode(golden.floats("latent"), {.chunk_frames = 1024}, CancelToken(), {}, &taps));
  EXPECT_LE(relative_error(planar(audio), golden.floats("audio")), kTolerance);
  for (const char* name : {"stem", "block0_up", "block0", "block1"})
    EXPECT_LE(relative_error(taps.at(name), golden.floats(name)), kTolerance) << name;
}

TEST(VaeDecoder, TilesDoNotChangeASample) {
  const Golden golden("vae-tiled");
  const auto vae = value_or_fail(VaeDecoder::load(vae_file(), test::test_compute()));
  const auto latent = golden.floats("latent");
  ASSERT_EQ(latent.size(), 40u * 64);
  const auto whole = value_or_fail(vae->decode(latent, {.chunk_frames = 1024}, CancelToken()));
  EXPECT_LE(relative_error(planar(whole), golden.floats("audio")), kTolerance);
  std::size_t n_tiles = 0;
  const auto tiled = value_or_fail(
      vae->decode(latent, {.chunk_frames = 32}, CancelToken(), [&](std::size_t, std::size_t n) { n_tiles = n; }));
  EXPECT_EQ(n_tiles, 5u);
  EXPECT_LE(relative_error(planar(tiled), planar(whole)), 1e-6);
  const auto by_memory = value_or_fail(vae->decode(latent, {}, CancelToken()));
  EXPECT_LE(relative_error(planar(by_memory), planar(whole)), 1e-6);
}

TEST(VaeEncoder, GivesTheGoldenMeanTiledOrNot) {
  const Golden golden("vae-encode");
  const auto vae = value_or_fail(VaeEncoder::load(vae_file(), test::test_compute()));
  const StereoAudio audio = from_interleaved(golden.floats("audio"));
  Taps taps;
  const auto whole = value_or_fail(vae->encode(audio, {.chunk_frames = 1024}, CancelToken(), {}, &taps));
  EXPECT_EQ(whole.size(), golden.floats("mean").size());
  EXPECT_LE(relative_error(whole, golden.floats("mean")), kTolerance);
  for (const char* name : {"enc_block3", "enc_block4"})
    EXPECT_LE(relative_error(taps.at(name), golden.floats(name)), kTolerance) << name;
  const auto tiled = value_or_fail(vae->encode(audio, {.chunk_frames = 20, .overlap_frames = 8}, CancelToken()));
  EXPECT_LE(relative_error(tiled, whole), 1e-6);
}

TEST(VaeEncoder, SamplesThatAreNoWholeFrameAreSeenButGiveNone) {
  const auto vae = value_or_fail(VaeEncoder::load(vae_file(), test::test_compute()));
  StereoAudio audio = from_interleaved(Golden("vae-encode").floats("audio"));
  audio.left.resize(3 * 1920 + 777);
  audio.right.resize(3 * 1920 + 777);
  EXPECT_EQ(value_or_fail(vae->encode(audio, {.chunk_frames = 64}, CancelToken())).size(), 3u * 64);
  audio.left.resize(1919);
  audio.right.resize(1919);
  const auto shorter = vae->encode(audio, {}, CancelToken());
  ASSERT_FALSE(shorter.ok());
  EXPECT_EQ(shorter.error().code, ErrorCode::kInvalid);
}

TEST(VaeDecoder, RefusesAndStops) {
  const auto vae = value_or_fail(VaeDecoder::load(vae_file(), test::test_compute()));
  EXPECT_FALSE(vae->decode(std::vector<float>(63), {}, CancelToken()).ok());
  std::vector<float> latent(64 * 4);
  latent[70] = std::nanf("");
  EXPECT_FALSE(vae->decode(latent, {}, CancelToken()).ok());
  latent[70] = 0;
  const CancelToken cancel;
  cancel.cancel();
  const auto stopped = vae->decode(latent, {}, cancel);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace hocket
