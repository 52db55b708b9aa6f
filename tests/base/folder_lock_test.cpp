#include "base/folder_lock.h"

#include <gtest/gtest.h>

#include <utility>

#include "support/temp_folder.h"

namespace hocket::test {
namespace {

TEST(FolderLock, IsHeldByOneAtATime) {
  const TempFolder folder;
  const auto file = folder.path() / "lock";
  auto first = FolderLock::take(file);
  ASSERT_TRUE(first.ok());
  const auto second = FolderLock::take(file);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kBusy);
  EXPECT_EQ(second.error().param, file.string());
  FolderLock kept = std::move(*first);
  EXPECT_FALSE(FolderLock::take(file).ok());
  kept = FolderLock();
  EXPECT_TRUE(FolderLock::take(file).ok());
}

TEST(FolderLock, NamesAFileThatCannotBe) {
  const TempFolder folder;
  const auto lock = FolderLock::take(folder.path() / "none" / "lock");
  ASSERT_FALSE(lock.ok());
  EXPECT_EQ(lock.error().code, ErrorCode::kIo);
  EXPECT_NE(lock.error().message.find("cannot open"), std::string::npos);
}

}  // namespace
}  // namespace hocket::test
