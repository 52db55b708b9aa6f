#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "music/dit/adapter.h"
#include "music/dit/dit.h"
#include "music/goldens.h"

namespace hocket {
namespace {

using test::Golden;
using test::relative_error;
using test::value_or_fail;

std::shared_ptr<const DitFile> dit_file() {
  return value_or_fail(DitFile::open(test::music_data("models/dit-turbo.gguf")));
}

TEST(Adapter, MergesEveryGoldenMatrixAndGivesItsVelocity) {
  for (const char* name : {"adapter-lora-0.7", "adapter-lora-1", "adapter-lokr-0.7", "adapter-lokr-mono-0.6"}) {
    const Golden golden(name);
    const auto file = dit_file();
    const auto source = value_or_fail(AdaptedWeights::open(file->gguf(), test::music_data(golden.params()["adapter"]),
                                                           golden.params()["adapter_scale"].get<float>()));
    EXPECT_EQ(source->n_merged(), golden.params()["merged_tensors"].size()) << name;
    for (const std::string tensor : golden.params()["merged_tensors"]) {
      if (!golden.has(tensor)) continue;
      const TensorInfo* info = file->gguf()->find(tensor);
      ASSERT_NE(info, nullptr);
      EXPECT_TRUE(source->mapped(*info).empty());
      std::vector<float> merged(info->n_bytes / sizeof(float));
      ASSERT_TRUE(source->read(*info, std::as_writable_bytes(std::span(merged))).ok());
      EXPECT_LE(relative_error(merged, golden.floats(tensor)), golden.tolerance(tensor)) << name << " " << tensor;
    }
    const auto dit = value_or_fail(Dit::load(file, source, test::test_compute()));
    const auto pass = value_or_fail(DitPass::create(*dit, {26, {345}, 345}));
    pass->set_context(golden.floats("context"));
    pass->set_conditioning(golden.floats("enc"));
    const auto velocity = value_or_fail(pass->run(golden.floats("x"), 1.0f, CancelToken()));
    EXPECT_LE(relative_error(velocity, golden.floats("velocity")), golden.tolerance("velocity")) << name;
  }
}

TEST(Adapter, RefusesWhatFitsNothing) {
  const auto wrong =
      AdaptedWeights::open(value_or_fail(DitFile::open(test::music_data("models/dit-base-cls.gguf")))->gguf(),
                           test::music_data("models/lokr.safetensors"), 1.0f);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().param, "adapter");
  EXPECT_FALSE(AdaptedWeights::open(dit_file()->gguf(), "no/such/file.safetensors", 1.0f).ok());
}

TEST(Safetensors, DamagedFilesAreRefused) {
  std::ifstream in(test::music_data("models/lora.safetensors"), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  const auto path = std::filesystem::temp_directory_path() / ("hocket-adapter-" + std::to_string(::getpid()));
  const auto open = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return SafetensorsFile::open(path.string());
  };
  EXPECT_TRUE(open(whole).ok());
  for (std::size_t n = 0; n < whole.size(); n += n < 32 ? 1 : 499) EXPECT_FALSE(open(whole.substr(0, n)).ok()) << n;
  std::string huge = whole;
  std::memset(huge.data(), 0xFF, 8);
  EXPECT_FALSE(open(huge).ok());
  for (const char* header : {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})",
                             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})",
                             R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
                             R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
                             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,400000]}})", R"({"a":7})", R"([])"}) {
    const uint64_t n = std::strlen(header);
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &n, 8);
    EXPECT_FALSE(open(bytes + header + std::string(64, '\0')).ok()) << header;
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace hocket
