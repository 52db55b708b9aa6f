#include "store/model_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/temp_folder.h"

namespace hocket::test {
namespace {

namespace fs = std::filesystem;

class ModelFolderTest : public testing::Test {
 protected:
  void copy(const std::string& model, const std::string& name) const {
    fs::copy_file(fs::path(HOCKET_TEST_DATA) / "music" / "models" / model, folder_.path() / name);
  }
  TempFolder folder_;
};

TEST_F(ModelFolderTest, SortsFilesByWhatTheySayTheyAre) {
  copy("vae.gguf", "z.gguf");
  copy("dit-turbo.gguf", "b.gguf");
  copy("dit-turbo.gguf", "a.gguf");
  copy("lm.gguf", "lm.bin");  // another ending
  std::ofstream(folder_.path() / "broken.gguf") << "GGUF?";
  fs::create_directory(folder_.path() / "folder.gguf");
  const auto found = ModelFolder::scan(folder_.path());
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->of("acestep-dit").size(), 2U);
  EXPECT_EQ(found->of("acestep-dit")[0]->name, "a.gguf");
  EXPECT_EQ(found->of("acestep-vae").size(), 1U);
  EXPECT_TRUE(found->of("acestep-lm").empty());
  EXPECT_EQ(found->find("acestep-lm", ""), nullptr);
  EXPECT_EQ(found->find("acestep-dit", "")->name, "a.gguf");
  EXPECT_EQ(found->find("acestep-dit", "b.gguf")->name, "b.gguf");
  EXPECT_EQ(found->find("acestep-dit", "b")->path, (folder_.path() / "b.gguf").string());
  EXPECT_EQ(found->find("acestep-dit", "z"), nullptr);  // that is a VAE
  EXPECT_EQ(found->find("acestep-dit", "../b"), nullptr);
}

TEST_F(ModelFolderTest, NamesAFolderThatCannotBeRead) {
  const auto none = ModelFolder::scan(folder_.path() / "none");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kIo);
  EXPECT_NE(none.error().message.find("none"), std::string::npos);
}

}  // namespace
}  // namespace hocket::test
