// http/connection.h: one connection and the request that it is at.
//
// Owns     buffers and TLS state; the socket is borrowed.
// Threads  the connection's own thread.
#pragma once

#include "http/connection_table.h"
#include "http/exchange.h"
#include "http/router.h"
#include "http/server_core.h"
#include "http/socket_io.h"

namespace hocket {

struct Connection {
  Connection(int socket, ServerCore& core) : io(socket, core.stop_fd, core.options.limits) {}
  SocketIo io;
  Admission admission = Admission::kFull;
  bool closing = false;  // no further request
  bool http10 = false;
  HttpRequest request;
  const Route* route = nullptr;
};

// The client as seen before its response has begun.
class PendingLink final : public ClientLink {
 public:
  PendingLink(Connection& connection, bool may_probe) : connection_(connection), may_probe_(may_probe) {}
  PeerState peer() override { return connection_.io.peer(); }
  // An interim response: every HTTP/1.1 client skips it (RFC 9110 §15.2).
  void probe() override {
    if (may_probe_) connection_.io.write_all("HTTP/1.1 100 Continue\r\n\r\n");
  }
  bool write(std::string_view) override { return false; }
  void close_after() override { connection_.closing = true; }

 private:
  Connection& connection_;
  const bool may_probe_;
};

}  // namespace hocket
