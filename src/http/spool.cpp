#include "http/spool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace hocket {
namespace {

constexpr std::size_t kInMemory = 256 * 1024;

Error spool_error(const char* what) {
  return Error(ErrorCode::kIo,
               fmt::format("cannot {} a temporary file: {}", what, std::generic_category().message(errno)));
}

}  // namespace

Spool::~Spool() {
  unmap();
  if (fd_ >= 0) ::close(fd_);
}

void Spool::unmap() {
  if (mapped_) ::munmap(mapped_, n_mapped_);
  mapped_ = nullptr;
}

Result<void> Spool::append(std::string_view bytes) {
  if (fd_ < 0 && n_bytes_ + bytes.size() <= kInMemory) {
    memory_ += bytes;
    n_bytes_ += bytes.size();
    return {};
  }
  if (fd_ < 0) {
    std::error_code error;
    std::string name = (std::filesystem::temp_directory_path(error) / "hocket-body-XXXXXX").string();
    fd_ = error ? -1 : ::mkostemp(name.data(), O_CLOEXEC);
    if (fd_ < 0) return spool_error("make");
    ::unlink(name.c_str());
    TRY(write_out(memory_));
    memory_ = {};
  }
  TRY(write_out(bytes));
  n_bytes_ += bytes.size();
  return {};
}

Result<void> Spool::write_out(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return spool_error("write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<std::span<const std::byte>> Spool::view() {
  if (fd_ < 0) return std::as_bytes(std::span<const char>(memory_));
  unmap();
  void* at = ::mmap(nullptr, n_bytes_, PROT_READ, MAP_PRIVATE, fd_, 0);
  if (at == MAP_FAILED) return spool_error("map");
  mapped_ = at;
  n_mapped_ = n_bytes_;
  return std::span<const std::byte>(static_cast<const std::byte*>(at), n_bytes_);
}

}  // namespace hocket
