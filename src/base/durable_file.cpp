#include "base/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include "base/random_id.h"
#include "base/system_error.h"

namespace hocket {
namespace {

constexpr std::string_view kUnfinished = ".tmp-";
constexpr std::size_t kSuffix = 6;  // characters after it

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool close() { return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

Result<void> sync_folder(const std::filesystem::path& folder) {
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.get() < 0 || ::fsync(descriptor.get()) != 0) return system_error("write the folder", folder);
  return {};
}

Result<std::unique_ptr<DurableFile>> DurableFile::create(const std::filesystem::path& path, bool for_all) {
  std::unique_ptr<DurableFile> file(new DurableFile(path));
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const mode_t mode = for_all ? 0666 : 0600;
  constexpr int kTries = 100;
  for (int i = 0; i < kTries && file->fd_ < 0; ++i) {
    const std::string suffix = random_id().substr(0, kSuffix);
    file->draft_ = (folder / fmt::format(".{}{}{}", path.filename().string(), kUnfinished, suffix)).string();
    file->fd_ = ::open(file->draft_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file->fd_ < 0 && errno != EEXIST) break;
  }
  if (file->fd_ < 0) {
    file->draft_.clear();  // it is somebody else's
    return system_error("create", path);
  }
  return file;
}

DurableFile::~DurableFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!draft_.empty()) ::unlink(draft_.c_str());
}

Result<void> DurableFile::append(std::span<const std::byte> bytes) {
  return write_all(fd_, bytes) ? Result<void>() : system_error("write", path_);
}

Result<void> DurableFile::commit() {
  if (::fsync(fd_) != 0 || ::close(std::exchange(fd_, -1)) != 0) return system_error("write", path_);
  if (::rename(draft_.c_str(), path_.c_str()) != 0) return system_error("name", path_);
  draft_.clear();
  return sync_folder(path_.has_parent_path() ? path_.parent_path() : ".");
}

Result<void> write_durably(const std::filesystem::path& path, std::span<const std::span<const std::byte>> pieces) {
  TRY_ASSIGN(const auto file, DurableFile::create(path));
  for (const std::span<const std::byte> piece : pieces) TRY(file->append(piece));
  return file->commit();
}

Result<void> write_durably(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  return write_durably(path, std::span(&bytes, 1));
}

Result<std::vector<std::byte>> read_file(const std::filesystem::path& path, std::size_t most) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    Error error = system_error("open", path);
    if (errno == ENOENT) error.code = ErrorCode::kNotFound;
    return error;
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return system_error("read", path);
  if (static_cast<uint64_t>(status.st_size) > most)
    return Error(ErrorCode::kInvalid, fmt::format("{} has {} bytes, more than {}", path.string(), status.st_size, most),
                 path.string());
  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  std::size_t n_read = 0;
  while (n_read < bytes.size()) {
    const ssize_t n = ::read(file.get(), bytes.data() + n_read, bytes.size() - n_read);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("read", path);
    if (n == 0) break;  // somebody made it shorter
    n_read += static_cast<std::size_t>(n);
  }
  bytes.resize(n_read);
  return bytes;
}

void remove_unfinished(const std::filesystem::path& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const std::size_t at = name.rfind(kUnfinished);
    std::error_code ignored;
    if (name.front() == '.' && at != std::string::npos && at + kUnfinished.size() + kSuffix == name.size())
      std::filesystem::remove(it->path(), ignored);
  }
}

}  // namespace hocket
