#include "http/listen_address.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "http/origin.h"

namespace hocket {

bool is_unix_path(const std::string& host) {
  return host.find('/') != std::string::npos || host.ends_with(".sock");
}

std::vector<std::string> addresses_of(const std::string& host) {
  if (host == "localhost") return {"127.0.0.1", "::1"};
  return {host};
}

Result<void> prepare_unix_path(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof(address.sun_path))
    return Error(ErrorCode::kInvalid,
                 fmt::format("the socket path {} is longer than {} bytes", path, sizeof(address.sun_path) - 1), "host");
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool refused =
      connect(probe, reinterpret_cast<sockaddr*>(&address), sizeof(address)) < 0 && errno == ECONNREFUSED;
  close(probe);
  if (struct stat info; refused && stat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) unlink(path.c_str());
  return {};
}

Result<ListenAddress> address_of(int socket) {
  const auto fault = [socket](std::string_view what) {
    return Error(ErrorCode::kInvalid, fmt::format("descriptor {} {}", socket, what), "socket");
  };
  int listens = 0;
  socklen_t n_listens = sizeof(listens);
  if (getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n_listens) != 0 || listens == 0)
    return fault("is no socket that listens for connections");
  sockaddr_storage address{};
  socklen_t n_address = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &n_address) != 0)
    return fault(fmt::format("has no address: {}", std::strerror(errno)));
  if (address.ss_family == AF_UNIX) {
    const auto* path = reinterpret_cast<const sockaddr_un*>(&address)->sun_path;
    const std::size_t n_path = n_address - offsetof(sockaddr_un, sun_path);
    if (n_path == 0 || path[0] == '\0') return fault("listens on a unix socket without a path");
    return ListenAddress{std::string(path, strnlen(path, n_path)), 0};
  }
  char host[NI_MAXHOST];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), n_address, host, sizeof(host), nullptr, 0,
                  NI_NUMERICHOST) != 0)
    return fault("listens on no address of IP");
  const in_port_t port = address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                                                       : reinterpret_cast<const sockaddr_in*>(&address)->sin_port;
  return ListenAddress{host, ntohs(port)};
}

Result<void> check_listen_options(const ServerOptions& options) {
  if (options.hosts.empty()) return Error(ErrorCode::kInvalid, "there is no address to listen on", "host");
  if (options.port < 0 || options.port > 65535)
    return Error(ErrorCode::kInvalid, fmt::format("port {} is not between 0 and 65535", options.port), "port");
  if (options.ssl_cert_file.empty() != options.ssl_key_file.empty())
    return Error(ErrorCode::kInvalid, "--ssl-cert-file and --ssl-key-file are given together or not at all",
                 options.ssl_cert_file.empty() ? "ssl-cert-file" : "ssl-key-file");
  for (const std::string& key : options.api_keys)
    if (key.empty()) return Error(ErrorCode::kInvalid, "an API key is empty", "api_keys");
  for (const std::string& host : options.hosts)
    if (!is_unix_path(host) && !is_loopback(host) && options.api_keys.empty() && !options.insecure)
      return Error(
          ErrorCode::kInvalid,
          fmt::format("{} can be reached by other machines: set an API key, or allow it with --insecure", host),
          "host");
  return {};
}

bool listens_locally(const ServerOptions& options) {
  return std::all_of(options.hosts.begin(), options.hosts.end(),
                     [](const std::string& host) { return is_unix_path(host) || is_loopback(host); });
}

}  // namespace hocket
