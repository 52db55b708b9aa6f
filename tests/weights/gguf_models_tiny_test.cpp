// The small golden models open, with their tensors inside the file, and survive damage anywhere in their headers.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "weights/gguf.h"
#include "weights/raw_gguf.h"

namespace hocket {
namespace {

std::vector<std::string> models_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".gguf") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(GgufModels, AllOpen) {
  const auto paths = models_in(HOCKET_TEST_DATA "/lm");
  EXPECT_GE(paths.size(), 2u);
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const auto file = GgufFile::open(path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    const auto arch = (*file)->metadata().string("general.architecture");
    ASSERT_TRUE(arch.ok());
    EXPECT_TRUE((*file)->metadata().integer(*arch + ".block_count", 1, 100).ok());
    ASSERT_NE((*file)->find("token_embd.weight"), nullptr);
    uint64_t bytes = 0;
    for (const TensorInfo& tensor : (*file)->tensors()) {
      bytes += tensor.n_bytes;
      EXPECT_EQ((*file)->data(tensor).size(), tensor.n_bytes);
    }
    EXPECT_GT(bytes * 10, (*file)->file_bytes());
    EXPECT_LT(bytes, (*file)->file_bytes());
  }
}

// Vocabularies of many converters.
TEST(GgufModels, VocabulariesOpen) {
  const auto paths = models_in(HOCKET_LLAMA_SOURCE "/models");
  EXPECT_GE(paths.size(), 10u);
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const auto file = GgufFile::open(path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    const auto tokens = (*file)->metadata().strings("tokenizer.ggml.tokens");
    ASSERT_TRUE(tokens.ok());
    ASSERT_NE(*tokens, nullptr);
    EXPECT_GT((*tokens)->size(), 1000u);
  }
}

TEST(GgufModels, SurviveRandomDamage) {
  const uint32_t seed = 20240229;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::string path = HOCKET_TEST_DATA "/lm/llama.gguf";
  const Bytes image = read_file(path);
  const auto good = GgufFile::parse(image);
  ASSERT_TRUE(good.ok()) << good.error().message;
  const std::size_t n_header = (*good)->tensors().at(0).offset_bytes;
  Bytes damaged = image;
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::size_t> places(1 + random() % 4);
    for (std::size_t& at : places) {
      at = random() % n_header;
      damaged[at] = static_cast<std::byte>(random());
    }
    const auto file = GgufFile::parse(damaged);
    EXPECT_TRUE(file.ok() || !file.error().message.empty());
    for (const std::size_t at : places) damaged[at] = image[at];
  }
  EXPECT_TRUE(GgufFile::parse(damaged).ok());
}

}  // namespace
}  // namespace hocket
