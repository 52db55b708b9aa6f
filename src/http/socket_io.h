// http/socket_io.h: reading and writing one client socket, plain or under TLS, within the server's time and size
// limits.
//
// The HTTP library reads and writes through this, so that heads, bodies and slow readers are bounded in one place.
//
// Owns     the buffer; the socket is borrowed.
// Threads  the connection's own thread. stop_fd becomes readable for all connections when the server stops.
// Errors   a read or write that fails returns false or -1; why() tells timeouts from closed sockets.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "http/exchange.h"
#include "http/options.h"
#include "http/request_head.h"
#include "http/tls.h"

namespace hocket {

class SocketIo {
 public:
  SocketIo(int socket, int stop_fd, const HttpLimits& limits) : socket_(socket), stop_fd_(stop_fd), limits_(limits) {}
  SocketIo(const SocketIo&) = delete;
  SocketIo& operator=(const SocketIo&) = delete;

  // The handshake, within the time that a head may take. False: the connection is of no use.
  bool start_tls(std::shared_ptr<const TlsContext> context);

  enum class HeadResult { kReady, kClosed, kFault };
  // Waits up to `idle` for a request to begin, then reads its whole head into the buffer.
  HeadResult read_head(std::chrono::milliseconds idle);
  const HeadFault& head_fault() const { return head_fault_; }

  // What was read ahead.
  std::string_view buffered() const { return std::string_view(buffer_).substr(consumed_); }
  void consume(std::size_t n) { consumed_ += n; }

  // The next bytes of a body: > 0, 0 at the end of input, -1 on failure or when the client is too slow.
  long read(char* to, std::size_t size);
  bool wait_readable();
  bool wait_writable();
  // Some of the bytes, at least one; -1 when the client is gone or took nothing for the stall time.
  long write(const char* bytes, std::size_t size);
  bool write_all(std::string_view bytes);

  PeerState peer() const;
  bool encrypted() const { return tls_.has_value(); }
  bool timed_out() const { return timed_out_; }
  int socket() const { return socket_; }

  // To be called before the socket is closed, so that what was written still arrives: a client that is sending is read
  // from for a while.
  void linger();

 private:
  enum class Wait { kReady, kTimeout, kStopped, kError };
  Wait wait_for(short events, Clock::time_point until, bool until_stopped) const;
  bool fill();  // one non-blocking read into the buffer; false at the end of input or on failure
  // One attempt each: > 0 bytes; 0 at the end of input; kAgain; kBroken.
  long receive_some(char* to, std::size_t size);
  long send_some(const char* bytes, std::size_t size);
  static constexpr long kAgain = -1, kBroken = -2;
  void discard_consumed();

  const int socket_;
  const int stop_fd_;
  const HttpLimits& limits_;
  std::optional<TlsSession> tls_;
  std::string buffer_;
  std::size_t consumed_ = 0;
  HeadFault head_fault_{};
  Clock::time_point body_start_{};
  std::size_t n_body_bytes_ = 0;
  bool timed_out_ = false;
};

// The client's IP address; "" on a unix socket.
std::string peer_address(int socket);

}  // namespace hocket
