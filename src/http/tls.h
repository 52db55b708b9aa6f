// http/tls.h: TLS of the server's connections, over OpenSSL: 1.2 and newer, HTTP/1.1 inside.
//
// Owns     TlsContext: certificate chain and key. TlsSession: the state of one connection; the socket is borrowed.
// Threads  TlsContext: any. TlsSession: its connection's thread.
// Errors   load(): kIo for files that cannot be read, kInvalid for a key that does not belong to the certificate; the
//          param is the option. Sessions: a failed step means that the connection is of no more use.
// Cost     a handshake is some milliseconds of one core.
#pragma once

#include <openssl/types.h>

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"

namespace hocket {

class TlsContext {
 public:
  static Result<std::shared_ptr<const TlsContext>> load(const std::string& cert_file, const std::string& key_file);
  explicit TlsContext(SSL_CTX* context) : context_(context) {}
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  SSL_CTX* get() const { return context_; }

 private:
  SSL_CTX* context_;
};

class TlsSession {
 public:
  // Makes the socket non-blocking.
  TlsSession(std::shared_ptr<const TlsContext> context, int socket);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // What a step came to. kWantRead and kWantWrite: wait for the socket, then ask for the same step again.
  enum class Step { kDone, kWantRead, kWantWrite, kEnd, kNotTls, kFailed };
  Step handshake();
  // kDone: `n` bytes, at least one. One call with room for 16 KiB leaves nothing behind that poll() would not show.
  Step receive(char* to, std::size_t size, std::size_t& n);
  Step send(const char* bytes, std::size_t size, std::size_t& n);
  // Tells the client that nothing follows, as far as that goes without waiting.
  void close_notify();

 private:
  Step step_of(int result);

  const std::shared_ptr<const TlsContext> context_;
  SSL* ssl_;
  bool broken_ = false;  // no orderly end any more
};

}  // namespace hocket
