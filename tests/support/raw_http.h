// tests/support/raw_http.h: an HTTP client that shows every byte, and sends what no library would.
//
// Threads  one client, one thread.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace hocket {

// The longest wait for what should happen at once. It only costs time in a test that fails, so it is long enough for a
// busy machine and a sanitizer's build; what a test means to tell apart takes a minute or for ever.
inline constexpr std::chrono::milliseconds kSoon = std::chrono::seconds(20);

struct RawResponse {
  int status = 0;    // 0: the connection ended without a response
  std::string head;  // status line and headers
  std::string body;  // without chunk framing
  bool complete = false;

  // "" when absent. Names as the server writes them.
  std::string header(const std::string& name) const {
    const std::size_t at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const std::size_t begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

class RawClient {
 public:
  explicit RawClient(int port, int receive_buffer_bytes = 0) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer_bytes > 0)
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof(receive_buffer_bytes));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  explicit RawClient(int connected_socket, std::nullptr_t) : fd_(connected_socket), connected_(true) {}
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  RawClient(RawClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_), input_(std::move(other.input_)) {}
  ~RawClient() { close(); }

  bool connected() const { return connected_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  void shut_down_sending() { shutdown(fd_, SHUT_WR); }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  // More bytes into input(); false at the end of the connection or after `wait`.
  bool receive(std::chrono::milliseconds wait = kSoon) {
    pollfd p{fd_, POLLIN, 0};
    if (poll(&p, 1, static_cast<int>(wait.count())) <= 0) return false;
    char bytes[4096];
    const ssize_t n = recv(fd_, bytes, sizeof(bytes), 0);
    if (n <= 0) return false;
    input_.append(bytes, static_cast<std::size_t>(n));
    return true;
  }
  bool receive_until(std::string_view text, std::chrono::milliseconds wait = kSoon) {
    const auto until = std::chrono::steady_clock::now() + wait;
    while (input_.find(text) == std::string::npos) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      if (left.count() <= 0 || !receive(left)) return false;
    }
    return true;
  }
  bool closed_soon() {
    const auto until = std::chrono::steady_clock::now() + kSoon;
    while (std::chrono::steady_clock::now() < until) {
      pollfd p{fd_, POLLIN, 0};
      if (poll(&p, 1, 50) <= 0) continue;
      char bytes[4096];
      const ssize_t n = recv(fd_, bytes, sizeof(bytes), 0);
      if (n <= 0) return true;
      input_.append(bytes, static_cast<std::size_t>(n));
    }
    return false;
  }
  const std::string& input() const { return input_; }

  // The next response, taken out of input(). Interim (1xx) responses are skipped. head_only: of a HEAD request.
  RawResponse response(bool head_only = false) {
    RawResponse r;
    do {
      if (!receive_until("\r\n\r\n")) return r;
      const std::size_t end = input_.find("\r\n\r\n") + 4;
      r.head = input_.substr(0, end);
      input_.erase(0, end);
      r.status = std::atoi(r.head.c_str() + 9);
    } while (r.status / 100 == 1);
    if (head_only) {
      r.complete = true;
    } else if (r.header("Transfer-Encoding") == "chunked") {
      while (!r.complete) {
        if (!receive_until("\r\n")) return r;
        const std::size_t n = std::strtoul(input_.c_str(), nullptr, 16);
        const std::size_t start = input_.find("\r\n") + 2;
        while (input_.size() < start + n + 2)
          if (!receive()) return r;
        r.body += input_.substr(start, n);
        input_.erase(0, start + n + 2);
        r.complete = n == 0;
      }
    } else if (const std::string length = r.header("Content-Length"); !length.empty()) {
      const std::size_t n = std::strtoul(length.c_str(), nullptr, 10);
      while (input_.size() < n)
        if (!receive()) return r;
      r.body = input_.substr(0, n);
      input_.erase(0, n);
      r.complete = true;
    } else if (r.status == 204) {
      r.complete = true;
    } else {
      while (receive()) continue;
      r.body = std::exchange(input_, "");
      r.complete = true;
    }
    return r;
  }

 private:
  int fd_ = -1;
  bool connected_ = false;
  std::string input_;
};

}  // namespace hocket
