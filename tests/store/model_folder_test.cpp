#include "store/model_folder.h"

#include <gtest/gtest.h>

#include <chrono>
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

TEST_F(ModelFolderTest, TheFirstPartOfASplitModelStandsForAll) {
  copy("dit-turbo.gguf", "big-00001-of-00003.gguf");
  copy("dit-turbo.gguf", "big-00002-of-00003.gguf");
  copy("dit-turbo.gguf", "big-00003-of-00003.gguf");
  copy("dit-turbo.gguf", "v1-0002-of-00003.gguf");  // no such ending
  const auto found = ModelFolder::scan(folder_.path());
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->files().size(), 2U);
  EXPECT_EQ(found->files()[0].name, "big-00001-of-00003.gguf");
  EXPECT_EQ(model_name("/x/big-00001-of-00003.gguf"), "big");
  EXPECT_EQ(model_name("v1-0002-of-00003.gguf"), "v1-0002-of-00003");
  EXPECT_EQ(model_name(".gguf"), ".gguf");
  EXPECT_EQ(model_name("a.b"), "a.b");
}

TEST_F(ModelFolderTest, ReadsAgainOnlyWhatChanged) {
  copy("dit-turbo.gguf", "a.gguf");
  copy("vae.gguf", "b.gguf");
  auto first = ModelFolder::scan(folder_.path());
  ASSERT_TRUE(first.ok());
  // The same size and time: that file is not looked into.
  const fs::path a = folder_.path() / "a.gguf";
  const auto written = fs::last_write_time(a);
  const auto n_bytes = fs::file_size(a);
  std::ofstream(a) << std::string(n_bytes, 'x');
  fs::last_write_time(a, written);
  copy("dit-turbo.gguf", "c.gguf");
  fs::remove(folder_.path() / "b.gguf");
  auto second = ModelFolder::scan(folder_.path(), &*first);
  ASSERT_TRUE(second.ok());
  ASSERT_EQ(second->files().size(), 2U);
  EXPECT_EQ(second->files()[0].name, "a.gguf");
  EXPECT_EQ(second->files()[1].name, "c.gguf");
  fs::last_write_time(a, written + std::chrono::seconds(1));
  const auto third = ModelFolder::scan(folder_.path(), &*second);
  ASSERT_TRUE(third.ok());
  ASSERT_EQ(third->files().size(), 1U);
  EXPECT_EQ(third->files()[0].name, "c.gguf");
}

TEST_F(ModelFolderTest, NamesAFolderThatCannotBeRead) {
  const auto none = ModelFolder::scan(folder_.path() / "none");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kIo);
  EXPECT_NE(none.error().message.find("none"), std::string::npos);
}

}  // namespace
}  // namespace hocket::test
