#include "http/client.h"

#include <fmt/format.h>
#include <httplib.h>

#include <atomic>

namespace hocket {
namespace {

constexpr std::chrono::seconds kConnectTimeout{10};
// Servers send pings long before, and answers without a stream take as long as they take.
constexpr std::chrono::seconds kReadTimeout{3600};
constexpr std::size_t kMostBodyBytes = std::size_t{64} << 20;

class LibraryClient final : public HttpClient {
 public:
  LibraryClient(const std::string& address, bool unix_socket, std::string url, std::string api_key)
      : client_(unix_socket ? httplib::Client(address, 80) : httplib::Client(address)),
        url_(std::move(url)),
        api_key_(std::move(api_key)) {
    if (!client_.is_valid()) return;  // there is nothing behind it to set up
    if (unix_socket) client_.set_address_family(AF_UNIX);
    client_.set_keep_alive(true);
    client_.set_connection_timeout(kConnectTimeout);
    client_.set_read_timeout(kReadTimeout);
  }
  bool is_valid() const { return client_.is_valid(); }

  Result<HttpReply> get(const std::string& path) override { return send("GET", path, "", nullptr); }
  Result<HttpReply> post(const std::string& path, const std::string& body,
                         const std::function<bool(std::string_view)>& on_bytes) override {
    return send("POST", path, body, on_bytes);
  }
  void stop() override {
    stopped_ = true;
    client_.stop();
  }

 private:
  Result<HttpReply> send(const std::string& method, const std::string& path, const std::string& body,
                         const std::function<bool(std::string_view)>& on_bytes);

  httplib::Client client_;
  const std::string url_, api_key_;
  std::atomic<bool> stopped_{false};
};

Result<HttpReply> LibraryClient::send(const std::string& method, const std::string& path, const std::string& body,
                                      const std::function<bool(std::string_view)>& on_bytes) {
  HttpReply reply;
  bool streams = false, too_large = false;
  httplib::Request request;
  request.method = method;
  request.path = path;
  if (!api_key_.empty()) request.headers.emplace("Authorization", "Bearer " + api_key_);
  if (method == "POST") {
    request.headers.emplace("Content-Type", "application/json");
    request.body = body;
  }
  request.response_handler = [&](const httplib::Response& head) {
    reply.status = head.status;
    reply.content_type = head.get_header_value("Content-Type");
    streams = on_bytes && head.status == 200 && reply.content_type.starts_with("text/event-stream");
    return !stopped_;
  };
  request.content_receiver = [&](const char* bytes, std::size_t n, std::size_t, std::size_t) {
    if (stopped_) return false;
    if (streams) return on_bytes({bytes, n});
    reply.body.append(bytes, n);
    too_large = reply.body.size() > kMostBodyBytes;
    return !too_large;
  };
  const httplib::Result sent = client_.send(request);
  if (stopped_) return Error(ErrorCode::kCancelled, "the request was cancelled");
  if (too_large)
    return Error(ErrorCode::kPeer, fmt::format("{} answered with more than {} bytes", url_, kMostBodyBytes));
  if (!sent && sent.error() != httplib::Error::Canceled)
    return Error(ErrorCode::kIo, fmt::format("cannot reach {}: {}", url_, httplib::to_string(sent.error())), "url");
  return reply;
}

}  // namespace

Result<std::unique_ptr<HttpClient>> HttpClient::open(const std::string& url, const std::string& api_key) {
  constexpr std::string_view kUnix = "unix:";
  const bool unix_socket = url.starts_with(kUnix);
  const auto wrong = [&](std::string_view why) {
    return Error(ErrorCode::kInvalid, fmt::format("{} is no address of a server: {}", url, why), "url");
  };
  std::string address = unix_socket ? url.substr(kUnix.size()) : url;
  if (unix_socket && !address.starts_with('/')) return wrong("after unix: comes an absolute path");
  if (!unix_socket) {
    const std::size_t scheme = address.find("://");
    if (scheme == std::string::npos || (address.substr(0, scheme) != "http" && address.substr(0, scheme) != "https"))
      return wrong("it begins with http://, https:// or unix:");
    const std::size_t host = scheme + 3;
    while (address.size() > host && address.ends_with('/')) address.pop_back();
    if (address.size() == host) return wrong("there is no host");
    if (address.find('/', host) != std::string::npos) return wrong("it has no path");
    if (address.find('@') != std::string::npos) return wrong("a key goes to --api-key");
  }
  auto client = std::make_unique<LibraryClient>(address, unix_socket, url, api_key);
  if (!client->is_valid()) return wrong("host or port is wrong");
  return std::unique_ptr<HttpClient>(std::move(client));
}

}  // namespace hocket
