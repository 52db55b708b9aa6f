#include "cli/text_input.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/system_error.h"

namespace hocket {

Result<std::string> read_text(const std::string& path) {
  std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) return system_error("read", path);
  std::string text;
  char buffer[16384];
  std::size_t n;
  while ((n = std::fread(buffer, 1, sizeof(buffer), file)) > 0) text.append(buffer, n);
  const bool failed = std::ferror(file) != 0;
  if (file != stdin) std::fclose(file);
  if (failed) return Error(ErrorCode::kIo, fmt::format("cannot read {}", path), path);
  return text;
}

LineReader::Status LineReader::read(std::string& line) {
  while (true) {
    const std::size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      if (!line.empty() && line.back() == '\r') line.pop_back();
      return Status::kLine;
    }
    if (ended_) {
      if (buffer_.empty()) return Status::kEnd;
      line = std::move(buffer_);
      buffer_.clear();
      return Status::kLine;
    }
    pollfd fds[2] = {{STDIN_FILENO, POLLIN, 0}, {interrupt_.fd(), POLLIN, 0}};
    if (poll(fds, 2, -1) < 0 && errno == EINTR) continue;
    if (interrupt_.take()) {
      buffer_.clear();
      return Status::kInterrupted;
    }
    char bytes[4096];
    const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof(bytes));
    if (n > 0) {
      buffer_.append(bytes, static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {
      ended_ = true;
    }
  }
}

}  // namespace hocket
