// http/listen_address.h: addresses and unix socket paths to listen on.
//
// Threads  pure functions, but for the file system.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "http/options.h"

namespace hocket {

bool is_unix_path(const std::string& host);

// "localhost" is two addresses, anything else one.
std::vector<std::string> addresses_of(const std::string& host);

// kInvalid when the path is too long. Removes a socket file that nobody listens on: a killed server leaves one.
Result<void> prepare_unix_path(const std::string& path);

struct ListenAddress {
  std::string host;  // as in ServerOptions::hosts
  int port = 0;      // 0 of a unix socket
};

// Where a socket listens. kInvalid when it is none that listens for streams, of IP or of a path.
Result<ListenAddress> address_of(int socket);

// What is wrong with the options before anything is bound. Other machines may come in only with a key, or when
// insecure.
Result<void> check_listen_options(const ServerOptions& options);

// Whether only this machine can connect.
bool listens_locally(const ServerOptions& options);

}  // namespace hocket
