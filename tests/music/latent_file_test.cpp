#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "music/goldens.h"
#include "music/latent_file.h"

namespace hocket {
namespace {

std::vector<float> some_latent(std::size_t n_frames) {
  std::mt19937 random(8);
  std::normal_distribution<float> normal;
  std::vector<float> latent(n_frames * kLatentChannels);
  for (float& value : latent) value = normal(random);
  std::fill(latent.begin() + 64, latent.begin() + 128, 0.0f);  // a frame of nothing
  return latent;
}

TEST(LatentFile, EveryFormatComesBackToItsPrecision) {
  const auto latent = some_latent(5);
  const struct {
    LatentFormat format;
    std::size_t n_bytes;
    double tolerance;
  } rows[] = {{LatentFormat::kFloat, 5 * 256, 0},
              {LatentFormat::kNac8, 8 + 5 * 66, 0.01},
              {LatentFormat::kNac4, 8 + 5 * 34, 0.15}};
  for (const auto& row : rows) {
    const auto bytes = write_latent(latent, row.format);
    EXPECT_EQ(bytes.size(), row.n_bytes);
    const auto back = test::value_or_fail(read_latent(bytes, "latent"));
    ASSERT_EQ(back.size(), latent.size());
    EXPECT_LE(test::relative_error(back, latent), row.tolerance);
  }
}

TEST(LatentFile, RefusesWhatDoesNotFit) {
  const auto refused = [](const std::vector<std::byte>& bytes) { return !read_latent(bytes, "src_latents").ok(); };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused(std::vector<std::byte>(255)));
  EXPECT_FALSE(refused(std::vector<std::byte>(256)));
  EXPECT_FALSE(refused(std::vector<std::byte>(15'000 * 256)));
  EXPECT_TRUE(refused(std::vector<std::byte>(15'001 * 256)));
  auto packed = write_latent(some_latent(3), LatentFormat::kNac8);
  packed[4] = std::byte{4};
  EXPECT_TRUE(refused(packed));
  packed[7] = std::byte{255};
  EXPECT_TRUE(refused(packed));
  auto infinite = write_latent(some_latent(3), LatentFormat::kNac4);
  infinite[8] = std::byte{0};
  infinite[9] = std::byte{0x7C};
  EXPECT_TRUE(refused(infinite));
  const float nan = std::nanf("");
  std::vector<std::byte> plain(256);
  std::memcpy(plain.data(), &nan, sizeof nan);
  EXPECT_TRUE(refused(plain));
}

}  // namespace
}  // namespace hocket
