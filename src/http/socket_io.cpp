#include "http/socket_io.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace hocket {
namespace {

constexpr std::size_t kReadBytes = 16 * 1024;
// A client that sent a body nobody read gets this long to notice the answer before its socket is reset.
constexpr std::chrono::milliseconds kLingerTime{1000};
constexpr std::size_t kLingerBytes = 64u << 20;

int poll_ms(Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 1'000'000));
}

}  // namespace

SocketIo::Wait SocketIo::wait_for(short events, Clock::time_point until, bool until_stopped) const {
  while (true) {
    pollfd fds[2] = {{socket_, events, 0}, {stop_fd_, POLLIN, 0}};
    const int n = poll(fds, until_stopped ? 2 : 1, poll_ms(until));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Wait::kError;
    if (n == 0) return Wait::kTimeout;
    if (fds[0].revents & events) return Wait::kReady;
    if (fds[0].revents) return Wait::kError;
    return Wait::kStopped;
  }
}

void SocketIo::discard_consumed() {
  buffer_.erase(0, consumed_);
  consumed_ = 0;
}

bool SocketIo::fill() {
  const std::size_t old = buffer_.size();
  buffer_.resize(old + kReadBytes);
  const long n = receive_some(buffer_.data() + old, kReadBytes);
  buffer_.resize(old + static_cast<std::size_t>(std::max(n, 0L)));
  return n > 0 || n == kAgain;
}

long SocketIo::receive_some(char* to, std::size_t size) {
  if (!tls_) {
    ssize_t n;
    do n = recv(socket_, to, size, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n >= 0) return static_cast<long>(n);
    return errno == EAGAIN || errno == EWOULDBLOCK ? kAgain : kBroken;
  }
  while (true) {
    std::size_t n = 0;
    switch (tls_->receive(to, size, n)) {
      case TlsSession::Step::kDone:
        return static_cast<long>(n);
      case TlsSession::Step::kWantRead:
        return kAgain;
      case TlsSession::Step::kWantWrite:
        if (!wait_writable()) return kBroken;
        break;
      case TlsSession::Step::kEnd:
        return 0;
      default:
        return kBroken;
    }
  }
}

long SocketIo::send_some(const char* bytes, std::size_t size) {
  if (!tls_) {
    ssize_t n;
    do n = send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n >= 0) return static_cast<long>(n);
    return errno == EAGAIN || errno == EWOULDBLOCK ? kAgain : kBroken;
  }
  std::size_t n = 0;
  switch (tls_->send(bytes, size, n)) {
    case TlsSession::Step::kDone:
      return static_cast<long>(n);
    case TlsSession::Step::kWantWrite:
      return kAgain;
    default:  // without renegotiation a write never waits for the client's bytes
      return kBroken;
  }
}

bool SocketIo::start_tls(std::shared_ptr<const TlsContext> context) {
  tls_.emplace(std::move(context), socket_);
  const auto deadline = Clock::now() + limits_.head_timeout;
  while (true) {
    const TlsSession::Step step = tls_->handshake();
    switch (step) {
      case TlsSession::Step::kDone:
        return true;
      case TlsSession::Step::kWantRead:
      case TlsSession::Step::kWantWrite:
        if (wait_for(step == TlsSession::Step::kWantRead ? POLLIN : POLLOUT, deadline, true) != Wait::kReady)
          return false;
        break;
      case TlsSession::Step::kNotTls:
        tls_.reset();  // what follows is said in plain text
        return false;
      default:
        return false;
    }
  }
}

SocketIo::HeadResult SocketIo::read_head(std::chrono::milliseconds idle) {
  discard_consumed();
  auto deadline = Clock::now() + (buffer_.empty() ? idle : limits_.head_timeout);
  bool begun = !buffer_.empty();
  while (true) {
    // A stray CRLF after the last body is allowed (RFC 9112 §2.2).
    while (buffer_.starts_with("\r\n")) buffer_.erase(0, 2);
    const std::size_t end = head_end(buffer_);
    const std::string_view head = std::string_view(buffer_).substr(0, end);
    auto fault = end == std::string_view::npos ? check_partial_head(head, limits_) : check_head(head, limits_);
    if (fault) {
      head_fault_ = std::move(*fault);
      return HeadResult::kFault;
    }
    if (end != std::string_view::npos) {
      body_start_ = Clock::now();
      n_body_bytes_ = 0;
      timed_out_ = false;
      return HeadResult::kReady;
    }
    if (!begun && !buffer_.empty()) {
      begun = true;
      deadline = Clock::now() + limits_.head_timeout;
    }
    switch (wait_for(POLLIN, deadline, !begun)) {
      case Wait::kReady:
        if (!fill()) return HeadResult::kClosed;
        break;
      case Wait::kTimeout:
        if (!begun) return HeadResult::kClosed;
        head_fault_ = {408, "the request head did not arrive in time", "request_timeout"};
        return HeadResult::kFault;
      case Wait::kStopped:
      case Wait::kError:
        return HeadResult::kClosed;
    }
  }
}

bool SocketIo::wait_readable() {
  if (!buffered().empty()) return true;
  const auto now = Clock::now();
  // The moment at which the average would fall below the minimum rate.
  const auto allowed =
      std::chrono::milliseconds(n_body_bytes_ * 1000 / std::max<std::size_t>(limits_.min_body_bytes_per_second, 1));
  const auto by_rate = body_start_ + std::max<std::chrono::milliseconds>(limits_.body_grace, allowed);
  const Wait wait = wait_for(POLLIN, std::min(by_rate, now + limits_.read_timeout), false);
  timed_out_ = timed_out_ || wait == Wait::kTimeout;
  return wait == Wait::kReady;
}

long SocketIo::read(char* to, std::size_t size) {
  if (buffered().empty()) {
    discard_consumed();
    while (buffer_.empty()) {
      if (!wait_readable()) return -1;
      if (!fill()) return 0;
    }
  }
  const std::size_t n = std::min(size, buffered().size());
  std::memcpy(to, buffered().data(), n);
  consume(n);
  n_body_bytes_ += n;
  return static_cast<long>(n);
}

bool SocketIo::wait_writable() {
  return wait_for(POLLOUT, Clock::now() + limits_.write_stall, false) == Wait::kReady;
}

long SocketIo::write(const char* bytes, std::size_t size) {
  while (true) {
    const long n = send_some(bytes, size);
    if (n != kAgain) return n >= 0 ? n : -1;
    if (!wait_writable()) return -1;
  }
}

bool SocketIo::write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const long n = write(bytes.data(), bytes.size());
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

PeerState SocketIo::peer() const {
  pollfd fd{socket_, POLLRDHUP, 0};
  if (poll(&fd, 1, 0) <= 0) return PeerState::kOpen;
  if (fd.revents & (POLLHUP | POLLERR | POLLNVAL)) return PeerState::kGone;
  return fd.revents & POLLRDHUP ? PeerState::kHalfClosed : PeerState::kOpen;
}

void SocketIo::linger() {
  // Closing a socket with unread input resets it, and the client may lose the answer that is still on its way.
  if (tls_) tls_->close_notify();
  shutdown(socket_, SHUT_WR);
  const auto until = Clock::now() + kLingerTime;
  char waste[kReadBytes];
  for (std::size_t total = 0; total < kLingerBytes;) {
    if (wait_for(POLLIN, until, true) != Wait::kReady) break;
    const ssize_t n = recv(socket_, waste, sizeof(waste), MSG_DONTWAIT);
    if (n <= 0) break;
    total += static_cast<std::size_t>(n);
  }
}

std::string peer_address(int socket) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  char text[INET6_ADDRSTRLEN] = "";
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return "";
  if (peer.ss_family == AF_INET) inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in&>(peer).sin_addr, text, sizeof(text));
  if (peer.ss_family == AF_INET6)
    inet_ntop(AF_INET6, &reinterpret_cast<sockaddr_in6&>(peer).sin6_addr, text, sizeof(text));
  return text;
}

}  // namespace hocket
