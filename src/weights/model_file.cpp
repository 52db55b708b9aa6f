#include "weights/model_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>

#include "base/log.h"

namespace hocket {
namespace {

std::string error_text(int code) {
  return std::generic_category().message(code);
}

Error io_error(const std::string& path, std::string_view what) {
  return Error(ErrorCode::kIo, fmt::format("{}: {}", path, what), path);
}

}  // namespace

Result<std::unique_ptr<ModelFile>> ModelFile::open(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos)
    return Error(ErrorCode::kNotFound, "the path of the model file is empty or has a zero byte", path);
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    const int code = errno;
    if (code == ENOENT || code == ENOTDIR)
      return Error(ErrorCode::kNotFound, fmt::format("{}: no such file", path), path);
    return io_error(path, error_text(code));
  }
  std::unique_ptr<ModelFile> file(new ModelFile(path, fd, 0));
  struct stat status {};
  if (::fstat(fd, &status) != 0) return io_error(path, error_text(errno));
  if (S_ISDIR(status.st_mode)) return io_error(path, "is a folder, not a model file");
  if (!S_ISREG(status.st_mode)) return io_error(path, "is not a regular file");
  file->size_ = static_cast<uint64_t>(status.st_size);
  return file;
}

ModelFile::~ModelFile() {
  if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
  ::close(fd_);
}

Result<void> ModelFile::read(uint64_t offset, std::span<std::byte> out) const {
  CHECK(offset <= size_ && out.size() <= size_ - offset);
  while (!out.empty()) {
    const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(path_, fmt::format("cannot read at byte {}: {}", offset, error_text(errno)));
    if (n == 0)
      return io_error(path_, fmt::format("ends at byte {}; it had {} bytes when it was opened", offset, size_));
    offset += static_cast<uint64_t>(n);
    out = out.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> ModelFile::map() {
  if (size_ == 0 || !mapped_.empty()) return {};
  if (size_ > std::numeric_limits<std::size_t>::max()) return io_error(path_, "is too large to map");
  const auto n = static_cast<std::size_t>(size_);
  void* start = ::mmap(nullptr, n, PROT_READ, MAP_SHARED, fd_, 0);
  if (start == MAP_FAILED) return io_error(path_, fmt::format("cannot map: {}", error_text(errno)));
  mapped_ = {static_cast<std::byte*>(start), n};
  return {};
}

void ModelFile::lock() {
  if (mapped_.empty()) return;
  locked_ = ::mlock(mapped_.data(), mapped_.size()) == 0;
  if (!locked_)
    log_warn("{}: cannot keep {} bytes in memory: {} (see the memlock limit, ulimit -l)", path_, mapped_.size(),
             error_text(errno));
}

void ModelFile::drop_pages(uint64_t offset, uint64_t n_bytes) const {
  if (mapped_.empty() || locked_ || offset > size_ || n_bytes > size_ - offset) return;
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t first = (offset + page - 1) / page * page;
  const uint64_t last = (offset + n_bytes) / page * page;
  if (first < last) ::madvise(mapped_.data() + first, static_cast<std::size_t>(last - first), MADV_DONTNEED);
}

}  // namespace hocket
