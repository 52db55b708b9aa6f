// base/database.h: an SQLite file: the index of what is kept on disk (sessions, jobs).
//
// Every change is a transaction that is on the disk when transact() returns (write-ahead log, synchronous=FULL), so a
// kill or a power failure at any moment leaves the state after some whole number of them.
//
// Owns     the file's connection; a second process that opens the same file waits for each transaction, at most 5 s.
// Threads  any; one transaction at a time.
// Errors   kIo with the path as `param` for what SQLite reports; open(): also kInvalid when a newer program wrote the
//          file, or it is no database. An Error or exception of the body undoes its transaction.
// Cost     a transaction that writes waits for the disk.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/result.h"

namespace SQLite {
class Database;
}

namespace hocket {

class Database {
 public:
  // Opens or creates `path`, readable by its owner only. versions[i] are the statements that lead from version i to
  // version i + 1 of the tables; those that the file has not seen are run, in one transaction.
  static Result<std::unique_ptr<Database>> open(const std::filesystem::path& path,
                                                std::span<const char* const> versions);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  using Body = std::function<Result<void>(SQLite::Database&)>;
  Result<void> transact(const Body& body);

 private:
  Database() = default;
  Result<void> migrate(std::span<const char* const> versions);

  std::string path_;
  std::mutex mutex_;
  std::unique_ptr<SQLite::Database> connection_;
};

}  // namespace hocket
