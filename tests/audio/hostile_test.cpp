// Files that lie, end early or are no audio: refused or read, never a crash.
#include <gtest/gtest.h>
#include <sndfile.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "audio/read.h"
#include "audio/sounds.h"
#include "audio/write.h"

namespace hocket {
namespace {

using Bytes = std::vector<std::byte>;

Bytes encoded(AudioFormat format) {
  return *encode_audio(test::sines(0.15, 48'000, 440, 660), {.format = format}, CancelToken());
}

// A file in a format that only the reader knows, by libsndfile itself.
Bytes written_by_libsndfile(int format, int n_channels, int rate_hz) {
  const auto path = std::filesystem::temp_directory_path() / ("hocket-audio-" + std::to_string(::getpid()));
  SF_INFO info{};
  info.format = format;
  info.channels = n_channels;
  info.samplerate = rate_hz;
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &info);
  EXPECT_NE(file, nullptr);
  std::vector<float> samples;
  for (int i = 0; i < rate_hz / 10; ++i)
    for (int c = 0; c < n_channels; ++c) samples.push_back(c == 0 ? 0.25f : c == 1 ? -0.5f : 0.9f);
  sf_writef_float(file, samples.data(), rate_hz / 10);
  sf_close(file);
  std::ifstream in(path, std::ios::binary);
  std::vector<char> chars((std::istreambuf_iterator<char>(in)), {});
  std::filesystem::remove(path);
  Bytes bytes(chars.size());
  std::memcpy(bytes.data(), chars.data(), chars.size());
  return bytes;
}

TEST(AudioReading, OggMonoAndManyChannels) {
  const auto ogg = read_audio(written_by_libsndfile(SF_FORMAT_OGG | SF_FORMAT_VORBIS, 2, 44'100), "audio");
  ASSERT_TRUE(ogg.ok()) << ogg.error().message;
  EXPECT_EQ(ogg->rate_hz, 44'100);
  EXPECT_NEAR(ogg->left[2000], 0.25, 0.05);
  EXPECT_NEAR(ogg->right[2000], -0.5, 0.05);
  const auto mono = read_audio(written_by_libsndfile(SF_FORMAT_WAV | SF_FORMAT_PCM_16, 1, 8'000), "audio");
  ASSERT_TRUE(mono.ok());
  EXPECT_EQ(mono->left, mono->right);
  const auto six = read_audio(written_by_libsndfile(SF_FORMAT_WAVEX | SF_FORMAT_PCM_24, 6, 48'000), "audio");
  ASSERT_TRUE(six.ok());
  EXPECT_NEAR(six->left[5], 0.25, 1e-5);
  EXPECT_NEAR(six->right[5], -0.5, 1e-5);
}

TEST(AudioReading, NamesWhatItRefuses) {
  const auto empty = read_audio({}, "ref_audio");
  ASSERT_FALSE(empty.ok());
  EXPECT_EQ(empty.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(empty.error().param, "ref_audio");
  const std::string text = "This is no audio, however long it may go on. This is no audio.";
  EXPECT_FALSE(read_audio(std::as_bytes(std::span(text)), "audio").ok());
  const auto missing = read_audio_file("no/such/file.wav");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

TEST(AudioReading, LimitsLengthAndSize) {
  const Bytes bytes = encoded(AudioFormat::kWav16);
  const auto longer = read_audio(bytes, "audio", {.max_seconds = 0.1});
  ASSERT_FALSE(longer.ok());
  EXPECT_NE(longer.error().message.find("longer than 0.1 seconds"), std::string::npos);
  EXPECT_FALSE(read_audio(bytes, "audio", {.max_file_bytes = 100}).ok());
}

TEST(AudioReading, RefusesNumbersThatAreNotFinite) {
  Bytes bytes = encoded(AudioFormat::kWav32);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes.data() + 44 + 400, &nan, sizeof nan);
  EXPECT_FALSE(read_audio(bytes, "audio").ok());
}

TEST(AudioReading, SurvivesEveryTruncationAndRandomDamage) {
  std::mt19937 random(20240607);
  for (const auto format : {AudioFormat::kWav16, AudioFormat::kWav32, AudioFormat::kFlac, AudioFormat::kMp3}) {
    const Bytes whole = encoded(format);
    for (std::size_t n = 0; n < whole.size(); n += n < 200 ? 1 : 97) {
      const auto audio = read_audio(std::span(whole).first(n), "audio");
      if (audio.ok()) {
        EXPECT_LE(audio->n_samples(), 4 * 48'000u);
      }
    }
    for (int round = 0; round < 60; ++round) {
      Bytes damaged = whole;
      const std::size_t reach = round % 2 == 0 ? std::min<std::size_t>(64, whole.size()) : whole.size();
      for (int i = 0; i < 4; ++i) damaged[random() % reach] = static_cast<std::byte>(random());
      const auto audio = read_audio(damaged, "audio", {.max_seconds = 5});
      if (!audio.ok()) {
        EXPECT_EQ(audio.error().code, ErrorCode::kInvalid);
      }
    }
  }
}

TEST(AudioReading, AHeaderThatPromisesMoreThanThereIsCostsNoMemory) {
  Bytes bytes = encoded(AudioFormat::kWav16);
  const uint32_t huge = 0xFFFFFFF0u;
  std::memcpy(bytes.data() + 40, &huge, sizeof huge);  // size of the data chunk
  const auto audio = read_audio(bytes, "audio");
  if (audio.ok()) {
    EXPECT_LE(audio->n_samples(), 48'000u);
  }
}

}  // namespace
}  // namespace hocket
