// base/durable_file.h: files that exist whole or not at all, whatever happens while they are written.
//
// Threads  any, for different paths.
// Errors   kIo with the path as `param`; nothing is left behind then.
// Cost     waits for the disk twice: for the file and for its name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace hocket {

// A file that is written piece by piece beside `path` (named .NAME.tmp-XXXXXX) and gets the name when commit() has all
// of it on the disk; an older file of that name is replaced. Destroyed before that, it leaves nothing behind.
class DurableFile {
 public:
  // `for_all`: readable by everybody as the umask allows, else by its owner only.
  static Result<std::unique_ptr<DurableFile>> create(const std::filesystem::path& path, bool for_all = false);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  Result<void> append(std::span<const std::byte> bytes);
  Result<void> commit();

 private:
  explicit DurableFile(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
  std::string draft_;
  int fd_ = -1;
};

// Writes the pieces one after the other to a DurableFile, readable by its owner only.
Result<void> write_durably(const std::filesystem::path& path, std::span<const std::span<const std::byte>> pieces);
Result<void> write_durably(const std::filesystem::path& path, std::span<const std::byte> bytes);

// Names that were given or taken in a folder are on the disk when it returns.
Result<void> sync_folder(const std::filesystem::path& folder);

// All of a file; kNotFound when there is none, kInvalid when it is larger than `most` bytes.
Result<std::vector<std::byte>> read_file(const std::filesystem::path& path, std::size_t most);

// Removes what an interrupted write_durably() left in a folder that nobody else writes to now.
void remove_unfinished(const std::filesystem::path& folder);

}  // namespace hocket
