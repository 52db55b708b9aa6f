#include "jobs/blob_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/system_error.h"

namespace hocket {

Result<BlobFile> BlobFile::open(const std::filesystem::path& path, JobFile file) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error("open", path);
  BlobFile blob(std::move(file), fd);
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<uint64_t>(status.st_size) != blob.file_.n_bytes)
    return Error(ErrorCode::kIo, fmt::format("{} does not have its {} bytes", path.string(), blob.file_.n_bytes),
                 path.string());
  return blob;
}

BlobFile& BlobFile::operator=(BlobFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(fd_, other.fd_);
  return *this;
}

BlobFile::~BlobFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::size_t> BlobFile::read(std::span<std::byte> to) {
  ssize_t n;
  do n = ::read(fd_, to.data(), to.size());
  while (n < 0 && errno == EINTR);
  if (n < 0) return system_error("read", file_.name);
  return static_cast<std::size_t>(n);
}

Result<std::vector<std::byte>> BlobFile::read_rest() {
  std::vector<std::byte> bytes(file_.n_bytes);
  std::size_t n_read = 0;
  while (n_read < bytes.size()) {
    TRY_ASSIGN(const std::size_t n, read(std::span(bytes).subspan(n_read)));
    if (n == 0) break;
    n_read += n;
  }
  bytes.resize(n_read);
  return bytes;
}

}  // namespace hocket
