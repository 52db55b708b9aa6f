#include "base/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/system_error.h"

namespace hocket {

Result<FolderLock> FolderLock::take(const std::filesystem::path& file) {
  FolderLock lock;
  lock.fd_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock.fd_ < 0) return system_error("open", file);
  if (::flock(lock.fd_, LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return system_error("lock", file);
  return Error(ErrorCode::kBusy, fmt::format("another process holds {}", file.string()), file.string());
}

FolderLock::FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace hocket
