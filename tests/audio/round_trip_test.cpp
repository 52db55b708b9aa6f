#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "audio/normalise.h"
#include "audio/read.h"
#include "audio/resample.h"
#include "audio/sounds.h"
#include "audio/write.h"

namespace hocket {
namespace {

using test::amplitude_at;
using test::sines;

std::vector<std::byte> encoded(const StereoAudio& audio, AudioEncoding encoding) {
  auto bytes = encode_audio(audio, encoding, CancelToken());
  EXPECT_TRUE(bytes.ok()) << (bytes.ok() ? "" : bytes.error().message);
  return bytes.ok() ? *bytes : std::vector<std::byte>();
}

StereoAudio decoded(const std::vector<std::byte>& bytes) {
  auto audio = read_audio(bytes, "audio");
  EXPECT_TRUE(audio.ok()) << (audio.ok() ? "" : audio.error().message);
  return audio.ok() ? *audio : StereoAudio();
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  return worst;
}

bool contains(const std::vector<std::byte>& bytes, std::string_view text) {
  const auto* first = reinterpret_cast<const char*>(bytes.data());
  return std::string_view(first, bytes.size()).find(text) != std::string_view::npos;
}

TEST(AudioRoundTrip, FormatsWithoutLossKeepEverySampleToTheirPrecision) {
  const StereoAudio audio = sines(0.2, 48'000, 440, 1000, 0.9f);
  const struct {
    AudioFormat format;
    double tolerance;
  } rows[] = {{AudioFormat::kWav16, 2.1 / 32'767},
              {AudioFormat::kWav24, 2.1 / 8'388'607},
              {AudioFormat::kWav32, 0},
              {AudioFormat::kFlac, 2.1 / 8'388'607}};
  for (const auto& row : rows) {
    const StereoAudio back = decoded(encoded(audio, {.format = row.format}));
    EXPECT_EQ(back.rate_hz, 48'000);
    EXPECT_LE(largest_difference(audio.left, back.left), row.tolerance) << audio_format_name(row.format);
    EXPECT_LE(largest_difference(audio.right, back.right), row.tolerance) << audio_format_name(row.format);
  }
}

TEST(AudioRoundTrip, Mp3KeepsLengthFrequenciesAndChannels) {
  const StereoAudio audio = sines(3, 48'000, 440, 3000);
  for (const int kbps : {64, 128, 320}) {
    const auto bytes = encoded(audio, {.format = AudioFormat::kMp3, .mp3_bitrate_kbps = kbps});
    EXPECT_NEAR(static_cast<double>(bytes.size()), kbps * 125 * 3.0, kbps * 30.0);
    const StereoAudio back = decoded(bytes);
    EXPECT_NEAR(static_cast<double>(back.n_samples()), 3 * 48'000, 2 * 1152);
    EXPECT_NEAR(amplitude_at(back.left, 48'000, 440), 0.5, 0.02);
    EXPECT_NEAR(amplitude_at(back.right, 48'000, 3000), 0.5, 0.02);
    EXPECT_LT(amplitude_at(back.left, 48'000, 3000), 0.02);
  }
}

TEST(AudioRoundTrip, WavHasThePlainHeaderAndLimits) {
  StereoAudio audio;
  audio.left = {2.0f, -2.0f, std::numeric_limits<float>::quiet_NaN()};
  audio.right = {0.5f, std::numeric_limits<float>::infinity(), -0.25f};
  const auto bytes = encoded(audio, {.format = AudioFormat::kWav16});
  ASSERT_EQ(bytes.size(), 44u + 12u);
  int16_t samples[6];
  std::memcpy(samples, bytes.data() + 44, sizeof samples);
  const int16_t expected[] = {32'767, 16'383, -32'767, 0, 0, -8'191};
  EXPECT_TRUE(std::equal(samples, samples + 6, expected));
  // Float files are not limited.
  const StereoAudio back = decoded(encoded(audio, {.format = AudioFormat::kWav32}));
  EXPECT_EQ(back.left, (std::vector<float>{2.0f, -2.0f, 0.0f}));
}

TEST(AudioRoundTrip, TagsTellTheRequestInEveryFormat) {
  const StereoAudio audio = sines(0.5, 48'000, 440, 440);
  const AudioTags tags{.title = "T\u00fcr", .comment = R"({"caption":"caf\u00e9"})", .software = "hocket"};
  for (const auto format : {AudioFormat::kMp3, AudioFormat::kWav16, AudioFormat::kWav32, AudioFormat::kFlac}) {
    const auto bytes = encoded(audio, {.format = format, .tags = tags});
    EXPECT_TRUE(contains(bytes, tags.comment)) << audio_format_name(format);
    EXPECT_TRUE(contains(bytes, tags.title)) << audio_format_name(format);
    EXPECT_NEAR(static_cast<double>(decoded(bytes).n_samples()), 24'000, 2 * 1152);
  }
}

TEST(AudioRoundTrip, RefusesWhatCannotBeEncoded) {
  const StereoAudio audio = sines(0.1, 48'000, 440, 440);
  const auto odd = encode_audio(audio, {.mp3_bitrate_kbps = 100}, CancelToken());
  ASSERT_FALSE(odd.ok());
  EXPECT_EQ(odd.error().param, "mp3_bitrate");
  EXPECT_FALSE(encode_audio(sines(0.1, 22'050, 440, 440), {}, CancelToken()).ok());
  EXPECT_FALSE(encode_audio(StereoAudio(), {.format = AudioFormat::kWav16}, CancelToken()).ok());
  const CancelToken cancel;
  cancel.cancel();
  const auto cancelled = encode_audio(audio, {}, cancel);
  ASSERT_FALSE(cancelled.ok());
  EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);
}

TEST(Resample, KeepsFrequenciesAndGivesTheExactLength) {
  for (const int from : {8'000, 22'050, 44'100, 96'000}) {
    const auto out = resample(sines(1.0, from, 440, 1500), 48'000);
    ASSERT_TRUE(out.ok());
    EXPECT_EQ(out->rate_hz, 48'000);
    EXPECT_EQ(out->n_samples(), 48'000u);
    EXPECT_NEAR(amplitude_at(out->left, 48'000, 440), 0.5, 1e-3);
    EXPECT_NEAR(amplitude_at(out->right, 48'000, 1500), 0.5, 1e-3);
  }
  const auto odd = resample(sines(0.0101, 44'100, 440, 440), 48'000);  // 445 samples
  ASSERT_TRUE(odd.ok());
  EXPECT_EQ(odd->n_samples(), 445u * 48'000 / 44'100);
  EXPECT_FALSE(resample(sines(0.1, 48'000, 1, 1), 0).ok());
}

TEST(Resample, RemovesWhatTheNewRateCannotCarry) {
  const auto out = resample(sines(1.0, 96'000, 30'000, 1000), 48'000);
  ASSERT_TRUE(out.ok());
  EXPECT_LT(amplitude_at(out->left, 48'000, 18'000), 1e-3);  // where 30 kHz would fold to
}

TEST(Normalise, ScalesToThePercentileAndLimits) {
  StereoAudio audio = sines(1.0, 48'000, 440, 440, 0.25f);
  audio.left[100] = 0.5f;  // one outlier among 96 000
  StereoAudio peak = audio;
  normalise_peak(peak, 0);
  EXPECT_FLOAT_EQ(peak.left[100], 1.0f);
  StereoAudio clipped = audio;
  normalise_peak(clipped, 100);
  EXPECT_FLOAT_EQ(clipped.left[100], 1.0f);
  EXPECT_NEAR(amplitude_at(clipped.right, 48'000, 440), 1.0, 1e-3);
  StereoAudio silence;
  silence.left = silence.right = {1e-8f, -1e-8f};
  normalise_peak(silence, 10);
  EXPECT_EQ(silence.left[0], 1e-8f);
}

}  // namespace
}  // namespace hocket
