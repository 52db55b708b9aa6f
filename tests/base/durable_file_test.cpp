#include "base/durable_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string_view>

#include "support/temp_folder.h"

namespace hocket::test {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(const std::filesystem::path& path) {
  const auto bytes = read_file(path, 1 << 20);
  EXPECT_TRUE(bytes.ok());
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

TEST(DurableFile, IsReplacedWhole) {
  const TempFolder folder;
  const auto path = folder.path() / "blob";
  const std::span<const std::byte> pieces[] = {bytes_of("one "), bytes_of("two")};
  ASSERT_TRUE(write_durably(path, pieces).ok());
  EXPECT_EQ(text_of(path), "one two");
  ASSERT_TRUE(write_durably(path, bytes_of("3")).ok());
  EXPECT_EQ(text_of(path), "3");
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST(DurableFile, TakesItsNameOnlyWhenItIsCommitted) {
  const TempFolder folder;
  const auto path = folder.path() / "model";
  ASSERT_TRUE(write_durably(path, bytes_of("old")).ok());
  {
    const auto file = DurableFile::create(path, /*for_all=*/true);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->append(bytes_of("half ")).ok());
    EXPECT_EQ(text_of(path), "old");
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  const auto file = DurableFile::create(path, /*for_all=*/true);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->append(bytes_of("half ")).ok());
  ASSERT_TRUE((*file)->append(bytes_of("whole")).ok());
  ASSERT_TRUE((*file)->commit().ok());
  EXPECT_EQ(text_of(path), "half whole");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0666U & ~mask);
}

TEST(DurableFile, LeavesNothingWhereItFails) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.path() / "blob");
  const auto refused = write_durably(folder.path() / "blob", bytes_of("x"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  EXPECT_EQ(refused.error().param, (folder.path() / "blob").string());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(DurableFile, CleansUpAfterAnInterruptedProcess) {
  const TempFolder folder;
  std::ofstream(folder.path() / ".blob.tmp-a1B2c3") << "half";
  std::ofstream(folder.path() / "blob") << "whole";
  std::ofstream(folder.path() / ".profile") << "mine";
  remove_unfinished(folder.path());
  EXPECT_FALSE(std::filesystem::exists(folder.path() / ".blob.tmp-a1B2c3"));
  EXPECT_EQ(text_of(folder.path() / "blob"), "whole");
  EXPECT_EQ(text_of(folder.path() / ".profile"), "mine");
}

TEST(DurableFile, SaysWhyAFileCannotBeRead) {
  const TempFolder folder;
  EXPECT_EQ(read_file(folder.path() / "none", 10).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(write_durably(folder.path() / "blob", bytes_of("12345")).ok());
  EXPECT_EQ(read_file(folder.path() / "blob", 4).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(read_file(folder.path() / "blob", 5)->size(), 5U);
}

}  // namespace
}  // namespace hocket::test
