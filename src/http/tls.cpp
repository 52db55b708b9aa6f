#include "http/tls.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <new>

namespace hocket {
namespace {

std::string reason_of_failure() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return reason == nullptr ? "unknown reason" : reason;
}

// A key under a passphrase is refused: the default would ask for it on the terminal.
int no_passphrase(char*, int, int, void*) {
  return 0;
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::load(const std::string& cert_file, const std::string& key_file) {
  ERR_clear_error();
  SSL_CTX* raw = SSL_CTX_new(TLS_server_method());
  if (raw == nullptr) return Error(ErrorCode::kInternal, "cannot set up TLS: " + reason_of_failure());
  auto context = std::make_shared<const TlsContext>(raw);
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_default_passwd_cb(raw, no_passphrase);
  if (SSL_CTX_use_certificate_chain_file(raw, cert_file.c_str()) != 1) {
    return Error(ErrorCode::kIo, fmt::format("cannot use the certificate {}: {}", cert_file, reason_of_failure()),
                 "ssl-cert-file");
  }
  if (SSL_CTX_use_PrivateKey_file(raw, key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    const bool mismatch = ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH;
    return Error(mismatch ? ErrorCode::kInvalid : ErrorCode::kIo,
                 fmt::format("cannot use the key {}: {}", key_file, reason_of_failure()), "ssl-key-file");
  }
  return context;
}

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
}

TlsSession::TlsSession(std::shared_ptr<const TlsContext> context, int socket)
    : context_(std::move(context)), ssl_(SSL_new(context_->get())) {
  if (ssl_ == nullptr) throw std::bad_alloc();
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  SSL_set_fd(ssl_, socket);
  SSL_set_accept_state(ssl_);
}

TlsSession::~TlsSession() {
  SSL_free(ssl_);
}

TlsSession::Step TlsSession::step_of(int result) {
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_NONE:
      return Step::kDone;
    case SSL_ERROR_WANT_READ:
      return Step::kWantRead;
    case SSL_ERROR_WANT_WRITE:
      return Step::kWantWrite;
    case SSL_ERROR_ZERO_RETURN:
      return Step::kEnd;
    default:
      break;
  }
  broken_ = true;
  const int reason = ERR_GET_REASON(ERR_peek_error());
  ERR_clear_error();
  return reason == SSL_R_HTTP_REQUEST ? Step::kNotTls : Step::kFailed;
}

TlsSession::Step TlsSession::handshake() {
  ERR_clear_error();
  return step_of(SSL_do_handshake(ssl_));
}

TlsSession::Step TlsSession::receive(char* to, std::size_t size, std::size_t& n) {
  ERR_clear_error();
  return step_of(SSL_read_ex(ssl_, to, size, &n));
}

TlsSession::Step TlsSession::send(const char* bytes, std::size_t size, std::size_t& n) {
  ERR_clear_error();
  return step_of(SSL_write_ex(ssl_, bytes, size, &n));
}

void TlsSession::close_notify() {
  if (broken_ || !SSL_is_init_finished(ssl_)) return;
  ERR_clear_error();
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

}  // namespace hocket
