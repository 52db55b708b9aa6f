// base/folder_lock.h: a folder that one process uses at a time.
//
// Owns     the lock; it goes with the object, or with the process.
// Threads  any.
// Errors   kBusy when another process has it; kIo. Both name the file.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace hocket {

class FolderLock {
 public:
  FolderLock() = default;
  // `file` is made where it is missing, for its owner only, and stays.
  static Result<FolderLock> take(const std::filesystem::path& file);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  ~FolderLock();

 private:
  int fd_ = -1;
};

}  // namespace hocket
