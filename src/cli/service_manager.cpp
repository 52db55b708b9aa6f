#include "cli/service_manager.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/log.h"

namespace hocket {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::optional<uint64_t> number(const std::string& text) {
  uint64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool names_this_process(const std::string& pid) {
  return number(pid) == static_cast<uint64_t>(getpid());
}

// The manager watches this process, and so often.
std::optional<Clock::duration> watch_interval() {
  const auto microseconds = number(environment("WATCHDOG_USEC"));
  if (!microseconds || *microseconds == 0) return std::nullopt;
  const std::string pid = environment("WATCHDOG_PID");
  if (!pid.empty() && !names_this_process(pid)) return std::nullopt;
  return std::chrono::microseconds(*microseconds / 2);
}

}  // namespace

std::vector<int> take_passed_sockets() {
  constexpr int kFirst = 3;
  constexpr uint64_t kMost = 1024;
  std::vector<int> sockets;
  if (names_this_process(environment("LISTEN_PID"))) {
    const uint64_t n = std::min(number(environment("LISTEN_FDS")).value_or(0), kMost);
    for (int socket = kFirst; socket < kFirst + static_cast<int>(n); ++socket) {
      fcntl(socket, F_SETFD, FD_CLOEXEC);
      sockets.push_back(socket);
    }
  }
  return sockets;
}

ServiceManager::ServiceManager() {
  const std::string path = environment("NOTIFY_SOCKET");
  if (path.empty()) return;
  // A path, or '@' and an abstract name.
  if ((path[0] != '/' && path[0] != '@') || path.size() >= sizeof(address_.sun_path)) {
    log_warn("NOTIFY_SOCKET is no address of a socket: {}", path);
    return;
  }
  address_.sun_family = AF_UNIX;
  std::memcpy(address_.sun_path, path.data(), path.size());
  if (path[0] == '@') address_.sun_path[0] = '\0';
  n_address_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) log_warn("cannot reach the service manager: {}", std::strerror(errno));
  interval_ = watch_interval();
}

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) ::close(socket_);
}

void ServiceManager::tell(std::string_view state) {
  if (socket_ < 0) return;
  const ssize_t sent = ::sendto(socket_, state.data(), state.size(), MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&address_), n_address_);
  if (sent >= 0 || errno == EAGAIN) return;  // a full queue: the next message will do
  log_warn("cannot tell the service manager: {}", std::strerror(errno));
  ::close(socket_);
  socket_ = -1;
}

void ServiceManager::tell_alive() {
  const auto now = Clock::now();
  if (!interval_ || now < next_) return;
  next_ = now + *interval_;
  tell("WATCHDOG=1");
}

}  // namespace hocket
