#include "base/database.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Transaction.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include "base/system_error.h"

namespace hocket {
namespace {

constexpr int kBusyMs = 5000;

Error error_of(const std::string& path, const SQLite::Exception& e) {
  const bool no_database = e.getErrorCode() == SQLITE_NOTADB || e.getErrorCode() == SQLITE_CORRUPT;
  return Error(no_database ? ErrorCode::kInvalid : ErrorCode::kIo, fmt::format("{}: {}", path, e.what()), path);
}

}  // namespace

Result<std::unique_ptr<Database>> Database::open(const std::filesystem::path& path,
                                                 std::span<const char* const> versions) {
  // SQLite gives the files beside it the mode of this one.
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return system_error("open", path);
  ::close(fd);
  std::unique_ptr<Database> database(new Database());
  database->path_ = path.string();
  try {
    database->connection_ = std::make_unique<SQLite::Database>(database->path_, SQLite::OPEN_READWRITE, kBusyMs);
    database->connection_->exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON");
  } catch (const SQLite::Exception& e) {
    return error_of(database->path_, e);
  }
  TRY(database->migrate(versions));
  return database;
}

Database::~Database() = default;

Result<void> Database::migrate(std::span<const char* const> versions) {
  return transact([&](SQLite::Database& db) -> Result<void> {
    const int version = db.execAndGet("PRAGMA user_version").getInt();
    if (version < 0 || static_cast<std::size_t>(version) > versions.size())
      return Error(ErrorCode::kInvalid,
                   fmt::format("{} is of version {}; this program knows {}", path_, version, versions.size()), path_);
    for (const char* statements : versions.subspan(static_cast<std::size_t>(version))) db.exec(statements);
    db.exec(fmt::format("PRAGMA user_version={}", versions.size()));
    return {};
  });
}

Result<void> Database::transact(const Body& body) {
  const std::lock_guard lock(mutex_);
  try {
    SQLite::Transaction transaction(*connection_, SQLite::TransactionBehavior::IMMEDIATE);
    TRY(body(*connection_));
    transaction.commit();
    return {};
  } catch (const SQLite::Exception& e) {
    return error_of(path_, e);
  }
}

}  // namespace hocket
