#include "base/database.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <fstream>
#include <stdexcept>

#include "support/temp_folder.h"

namespace hocket::test {
namespace {

constexpr std::array<const char*, 2> kVersions = {"CREATE TABLE t (x INTEGER)", "ALTER TABLE t ADD COLUMN y TEXT"};

int64_t count(Database& database) {
  int64_t n = -1;
  EXPECT_TRUE(database
                  .transact([&](SQLite::Database& db) -> Result<void> {
                    n = db.execAndGet("SELECT count(*) FROM t").getInt64();
                    return {};
                  })
                  .ok());
  return n;
}

Result<void> insert(SQLite::Database& db) {
  db.exec("INSERT INTO t (x) VALUES (1)");
  return {};
}

TEST(Database, KeepsWhatWasCommittedForItsOwnerOnly) {
  const TempFolder folder;
  const auto path = folder.path() / "index.db";
  {
    auto database = Database::open(path, std::span(kVersions).first(1));
    ASSERT_TRUE(database.ok()) << database.error().message;
    ASSERT_TRUE((*database)->transact(insert).ok());
  }
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  auto newer = Database::open(path, kVersions);
  ASSERT_TRUE(newer.ok()) << newer.error().message;
  EXPECT_EQ(count(**newer), 1);
  const auto older = Database::open(path, std::span(kVersions).first(1));
  ASSERT_FALSE(older.ok());
  EXPECT_EQ(older.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(older.error().param, path.string());
}

TEST(Database, UndoesWhatFailed) {
  const TempFolder folder;
  auto database = *Database::open(folder.path() / "index.db", kVersions);
  const auto refused = database->transact([](SQLite::Database& db) -> Result<void> {
    TRY(insert(db));
    return Error(ErrorCode::kBusy, "no");
  });
  EXPECT_EQ(refused.error().code, ErrorCode::kBusy);
  const auto wrong = database->transact([](SQLite::Database& db) -> Result<void> {
    TRY(insert(db));
    db.exec("INSERT INTO nothing VALUES (1)");
    return {};
  });
  EXPECT_EQ(wrong.error().code, ErrorCode::kIo);
  EXPECT_EQ(count(*database), 0);
}

TEST(Database, NamesFilesThatItCannotUse) {
  const TempFolder folder;
  std::ofstream(folder.path() / "text.db") << std::string(4096, 'x');
  const auto text = Database::open(folder.path() / "text.db", kVersions);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, ErrorCode::kInvalid);
  const auto missing = Database::open(folder.path() / "no" / "index.db", kVersions);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace hocket::test
