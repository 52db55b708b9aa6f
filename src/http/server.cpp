// The server side of cpp-httplib. The library parses and writes messages; what is read, how much of it and how long
// that may take is decided by SocketIo, and what is answered by the Router.
#include "http/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <httplib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "base/random_id.h"
#include "http/body_intake.h"
#include "http/connection.h"
#include "http/error_reply.h"
#include "http/ids.h"
#include "http/listen_address.h"
#include "http/server_core.h"
#include "http/sse.h"

namespace hocket {
namespace {

constexpr std::size_t kRequestsPerConnection = 1000;
// After the drain time streams have been told to end; a client that does not take even that is cut off.
constexpr std::chrono::milliseconds kCloseGrace{2000};

// The library's handlers get no handle on their connection; each runs on its connection's thread.
thread_local Connection* t_connection = nullptr;

// The client while it gets a stream.
class StreamLink final : public ClientLink {
 public:
  StreamLink(Connection& connection, httplib::DataSink& sink) : connection_(connection), sink_(sink) {}
  PeerState peer() override { return connection_.io.peer(); }
  void probe() override { write(kSsePing); }
  bool write(std::string_view bytes) override { return ok_ = ok_ && sink_.write(bytes.data(), bytes.size()); }
  void close_after() override { connection_.closing = true; }
  bool ok() const { return ok_; }

 private:
  Connection& connection_;
  httplib::DataSink& sink_;
  bool ok_ = true;
};

class LibraryStream final : public httplib::Stream {
 public:
  explicit LibraryStream(SocketIo& io) : io_(io) {}
  bool is_readable() const override { return !io_.buffered().empty(); }
  bool wait_readable() const override { return io_.wait_readable(); }
  bool wait_writable() const override { return io_.wait_writable(); }
  bool is_peer_alive() const override { return io_.peer() != PeerState::kGone; }
  ssize_t read(char* to, size_t size) override { return io_.read(to, size); }
  ssize_t write(const char* bytes, size_t size) override { return io_.write(bytes, size); }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return io_.socket(); }
  time_t duration() const override { return 0; }
  const char* buffered_data(size_t& size) const override {
    size = io_.buffered().size();
    return size > 0 ? io_.buffered().data() : nullptr;
  }
  void consume_buffered(size_t size) override { io_.consume(size); }

 private:
  SocketIo& io_;
};

// A thread a connection. Beyond the table's capacity the library closes the socket unread.
class ThreadPerConnection final : public httplib::TaskQueue {
 public:
  explicit ThreadPerConnection(std::size_t most) : most_(most) {}
  bool enqueue(std::function<void()> serve) override {
    {
      const std::lock_guard lock(mutex_);
      if (n_ >= most_) return false;
      ++n_;
    }
    try {
      std::thread([this, serve = std::move(serve)] {
        serve();
        leave();
      }).detach();
    } catch (const std::system_error& e) {
      log_error("cannot start a connection thread: {}", e.what());
      leave();
      return false;
    }
    return true;
  }
  void shutdown() override {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return n_ == 0; });
  }

 private:
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--n_ == 0) done_.notify_all();  // under the lock: shutdown() may destroy *this as soon as it is free
  }
  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable done_;
  std::size_t n_ = 0;
};

void put(HttpResponse from, httplib::Response& to) {
  to.status = from.status;
  for (const auto& [name, value] : from.headers) to.set_header(name, value);
  if (!from.stream) {
    if (from.status != 204) to.set_content(std::move(from.body), from.content_type);
    return;
  }
  // The library writes the head before it first calls the provider, and the provider writes the whole stream in one
  // call.
  const std::optional<std::size_t> n_bytes = from.stream_bytes;
  auto provider = [stream = std::move(from.stream), connection = t_connection, n_bytes](httplib::DataSink& sink) {
    StreamLink link(*connection, sink);
    stream(link);
    if (link.ok() && !n_bytes) sink.done();
    return link.ok();
  };
  if (n_bytes) {
    to.set_content_provider(*n_bytes, from.content_type,
                            [provider](size_t, size_t, httplib::DataSink& sink) { return provider(sink); });
    return;
  }
  const auto open_ended = [provider](size_t, httplib::DataSink& sink) { return provider(sink); };
  if (t_connection->http10)
    to.set_content_provider(from.content_type, open_ended);
  else
    to.set_chunked_content_provider(from.content_type, open_ended);
}

// One listening socket.
class Listener final : public httplib::Server {
 public:
  Listener(ServerCore& core, std::string host) : core_(core), host_(std::move(host)) {
    const HttpLimits& limits = core_.options.limits;
    // Only the table's count matters; the extra threads tell clients beyond it to come back later.
    const std::size_t most = limits.max_connections + limits.reserved_connections + 8;
    new_task_queue = [most] { return new ThreadPerConnection(most); };
    set_keep_alive_max_count(kRequestsPerConnection);
    set_keep_alive_timeout(std::chrono::duration_cast<std::chrono::seconds>(limits.keep_alive).count());
    // Each route has its own limit.
    set_payload_max_length(std::max({limits.max_body_bytes, limits.max_upload_bytes, limits.max_state_bytes}));
    // Without SO_REUSEPORT: two servers on one port would share its connections at random.
    set_socket_options([](socket_t socket) { httplib::set_socket_opt(socket, SOL_SOCKET, SO_REUSEADDR, 1); });
    set_tcp_nodelay(!is_unix_path(host_));
    set_handlers();
  }
  ~Listener() override {
    if (adopted_ >= 0)
      ::close(adopted_);
    else if (is_unix_path(host_) && bound_port_ >= 0)
      unlink(host_.c_str());
  }

  // port 0: any free one.
  Result<void> bind(int port);
  // Takes a socket that listens on the host already.
  void adopt(int socket, int port);
  void run() {
    thread_ = std::thread([this] { listen_after_bind(); });
  }
  void close_socket() {
    // stop() shuts the socket down, also for those who share it and will accept what waits in it.
    if (adopted_ >= 0)
      svr_sock_ = INVALID_SOCKET;
    else
      stop();
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  int port() const { return bound_port_; }
  std::string url() const;

 private:
  void set_handlers();
  bool process_and_close_socket(socket_t socket) override;
  void serve(Connection& connection, const std::string& address);
  bool start_tls(Connection& connection);
  void write_error(Connection& connection, int status, std::string_view message, std::string_view code);
  void begin_request(Connection& connection, httplib::Request& request);

  ServerCore& core_;
  const std::string host_;
  int bound_port_ = -1;
  int adopted_ = -1;
  std::thread thread_;
};

Result<void> Listener::bind(int port) {
  if (is_unix_path(host_)) {
    TRY(prepare_unix_path(host_));
    set_address_family(AF_UNIX);
    if (!bind_to_port(host_, 80))
      return Error(ErrorCode::kIo, fmt::format("cannot listen on {}: {}", host_, std::strerror(errno)), "host");
    chmod(host_.c_str(), 0660);
    bound_port_ = 0;
    return {};
  }
  const bool v6 = host_.find(':') != std::string::npos;
  if (v6) set_address_family(AF_INET6), set_ipv6_v6only(true);
  errno = 0;
  bound_port_ = port == 0 ? bind_to_any_port(host_) : bind_to_port(host_, port) ? port : -1;
  if (bound_port_ > 0) return {};
  const int fault = errno;
  const std::string why = fault != 0 ? std::strerror(fault) : "the address is not one of this machine's";
  Error error(ErrorCode::kIo, fmt::format("cannot listen on {} port {}: {}", host_, port, why), "host");
  if (fault == EADDRINUSE) error.reason = "address_in_use";
  return error;
}

void Listener::adopt(int socket, int port) {
  // Nothing wakes the thread that waits on a socket which stays open, so it looks up now and then; and it never waits
  // in accept() for a connection that another process took.
  set_idle_interval(std::chrono::milliseconds(100));
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  svr_sock_ = adopted_ = socket;
  bound_port_ = port;
}

std::string Listener::url() const {
  if (is_unix_path(host_)) return fmt::format("unix:{}", host_);
  const bool v6 = host_.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", core_.tls() ? "https" : "http", v6 ? "[" : "", host_, v6 ? "]" : "",
                     bound_port_);
}

void Listener::set_handlers() {
  // begin_request() gives every request the path "/", so that these two see all of them; the Router knows the paths.
  set_pre_routing_handler([this](const httplib::Request&, httplib::Response& response) {
    Connection& connection = *t_connection;
    Router::Gate gate = core_.router.gate(connection.request, connection.admission == Admission::kReserved);
    if (gate.response) {
      put(std::move(*gate.response), response);
      return HandlerResponse::Handled;
    }
    connection.route = gate.route;
    if (route_reads_body(*gate.route)) return HandlerResponse::Unhandled;
    put(core_.router.answer(*gate.route, connection.request), response);
    return HandlerResponse::Handled;
  });
  const auto with_body = [this](const httplib::Request&, httplib::Response& response,
                                const httplib::ContentReader& read) {
    Connection& connection = *t_connection;
    const HttpLimits& limits = core_.options.limits;
    BodyIntake intake(connection.request, limits, route_body_limit(*connection.route, connection.request, limits));
    // The library reads a body in parts whenever its type says so; the router let only such routes through.
    const bool complete = connection.request.multipart
                              ? read(
                                    [&](const httplib::FormData& part) {
                                      return intake.begin_part(part.name, part.filename, part.content_type);
                                    },
                                    [&](const char* bytes, size_t n) { return intake.take_of_part({bytes, n}); })
                              : read([&](const char* bytes, size_t n) { return intake.take({bytes, n}); });
    if (complete) {
      put(core_.router.answer(*connection.route, connection.request), response);
    } else if (auto fault = intake.fault()) {
      connection.closing = true;
      put(std::move(*fault), response);
    } else if (response.status != 413) {
      connection.closing = true;
      put(connection.io.timed_out() ? protocol_error(408, "the request body did not arrive in time", "request_timeout")
                                    : protocol_error(400, "the request body is cut short or malformed", "bad_request"),
          response);
    }
  };
  Post("/", with_body);
  Put("/", with_body);
  // What the library refuses by itself has no body yet.
  set_error_handler([this](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty() || response.content_provider_) return;
    const auto most = [&] {
      const Connection& connection = *t_connection;
      const HttpLimits& limits = core_.options.limits;
      return connection.route ? route_body_limit(*connection.route, connection.request, limits) : limits.max_body_bytes;
    };
    HttpResponse error = response.status == 413
                             ? body_too_large(most())
                             : protocol_error(response.status, httplib::status_message(response.status), "bad_request");
    put(std::move(error), response);
  });
  set_post_routing_handler([this](const httplib::Request&, httplib::Response& response) {
    Connection& connection = *t_connection;
    core_.stats.count_response(response.status);
    for (const auto& [name, value] : core_.router.common_headers(connection.request)) response.set_header(name, value);
    if (core_.stopping || connection.admission == Admission::kReserved) response.set_header("Connection", "close");
    if (response.has_header("Connection") && response.get_header_value("Connection") == "close") {
      connection.closing = true;
      response.headers.erase("Keep-Alive");
    }
    response.headers.erase("Accept-Ranges");
  });
  set_exception_handler([](const httplib::Request&, httplib::Response& response, std::exception_ptr) {
    put(protocol_error(500, "an internal error", "internal_error"), response);
  });
}

void Listener::begin_request(Connection& connection, httplib::Request& request) {
  HttpRequest& mine = connection.request;
  mine.method = request.method;
  mine.path = std::exchange(request.path, std::string("/"));
  request.ranges.clear();  // no response here is a part of something
  for (const auto& [name, value] : request.headers) mine.headers.emplace_back(name, value);
  for (const auto& [name, value] : request.params) mine.query.emplace_back(name, value);
  mine.multipart = request.is_multipart_form_data();
  const std::string_view id = mine.header("X-Request-Id");
  mine.request_id = acceptable_request_id(id) ? std::string(id) : random_id();
}

// For what goes wrong before there is a request that the library could answer.
void Listener::write_error(Connection& connection, int status, std::string_view message, std::string_view code) {
  core_.stats.count_response(status);
  const HttpResponse error = protocol_error(status, message, code);
  connection.io.write_all(fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
      httplib::status_message(status), error.body.size(), error.body));
}

bool Listener::start_tls(Connection& connection) {
  const auto tls = is_unix_path(host_) ? nullptr : core_.tls();
  if (!tls || connection.io.start_tls(tls)) return true;
  if (!connection.io.encrypted()) write_error(connection, 400, "this port speaks TLS only: use https", "tls_required");
  return false;
}

void Listener::serve(Connection& connection, const std::string& address) {
  const HttpLimits& limits = core_.options.limits;
  LibraryStream stream(connection.io);
  for (std::size_t i = 0; i < kRequestsPerConnection && !connection.closing && !core_.stopping; ++i) {
    switch (connection.io.read_head(i == 0 ? limits.head_timeout : limits.keep_alive)) {
      case SocketIo::HeadResult::kClosed:
        return;
      case SocketIo::HeadResult::kFault: {
        const HeadFault& fault = connection.io.head_fault();
        write_error(connection, fault.status, fault.message, fault.code);
        return;
      }
      case SocketIo::HeadResult::kReady:
        break;
    }
    const bool http10 = connection.io.buffered().substr(0, connection.io.buffered().find('\r')).ends_with("HTTP/1.0");
    PendingLink link(connection, !http10);
    connection.request = {};
    connection.request.request_id = random_id();
    connection.request.link = &link;
    connection.http10 = http10;
    bool closed = false;
    const bool last = i + 1 == kRequestsPerConnection;
    if (!process_request(stream, address, 0, "", 0, last, closed,
                         [&](httplib::Request& request) { begin_request(connection, request); }) ||
        closed)
      return;
  }
}

bool Listener::process_and_close_socket(socket_t socket) {
  const std::string address = peer_address(socket);
  Connection connection(socket, core_);
  connection.admission = core_.table.admit(socket, address);
  if (connection.admission != Admission::kRefused) {
    t_connection = &connection;
    serve_guarded([&] {
      if (start_tls(connection)) serve(connection, address);
      return true;
    });
    t_connection = nullptr;
    connection.io.linger();
  }
  core_.table.leave(socket, address, connection.admission);
  ::close(socket);
  return true;
}

class HttpServer final : public Server {
 public:
  // `passed`: where the options' sockets listen.
  HttpServer(ServerOptions options, std::vector<ListenAddress> passed, ModelHost& host, MusicService* music,
             bool loopback, ServerFiles files)
      : core_(std::move(options), host, music, loopback, std::move(files)), passed_(std::move(passed)) {}
  ~HttpServer() override { stop(std::chrono::milliseconds(0)); }

  Result<void> listen();
  int port() const override { return listeners_.front()->port(); }
  std::vector<std::string> urls() const override {
    std::vector<std::string> urls;
    for (const auto& listener : listeners_) urls.push_back(listener->url());
    return urls;
  }
  std::size_t n_connections() const override { return core_.table.size(); }
  Result<void> set_api_keys(std::vector<std::string> keys) override {
    if (keys.empty() && !core_.options.api_keys.empty())
      return Error(ErrorCode::kInvalid, "the list of API keys is empty; the old keys stay", "api_keys");
    core_.router.keys().replace(std::move(keys));
    return {};
  }
  Result<void> reload() override { return core_.reload(); }
  void stop(std::chrono::milliseconds drain) override;

 private:
  Result<void> bind_all();
  Result<void> bind_to_free_port();
  void adopt_all();

  ServerCore core_;
  const std::vector<ListenAddress> passed_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::mutex stop_mutex_;
  bool stopped_ = false;
};

Result<void> HttpServer::bind_all() {
  listeners_.clear();
  int port = core_.options.port;
  for (const std::string& host : core_.options.hosts) {
    for (const std::string& address : addresses_of(host)) {
      auto listener = std::make_unique<Listener>(core_, address);
      auto bound = listener->bind(port);
      // A machine without IPv6 still has a localhost.
      if (!bound && host != address && address == "::1" && bound.error().reason != "address_in_use") continue;
      TRY(bound);
      if (listener->port() > 0) port = listener->port();  // the same one on every address
      listeners_.push_back(std::move(listener));
    }
  }
  return {};
}

// A port that was free on the first address may be taken on the next: with port 0 another will do.
Result<void> HttpServer::bind_to_free_port() {
  auto bound = bind_all();
  for (int i = 0; !bound && core_.options.port == 0 && bound.error().reason == "address_in_use" && i < 10; ++i)
    bound = bind_all();
  return bound;
}

void HttpServer::adopt_all() {
  for (std::size_t i = 0; i < passed_.size(); ++i) {
    listeners_.push_back(std::make_unique<Listener>(core_, passed_[i].host));
    listeners_.back()->adopt(core_.options.sockets[i], passed_[i].port);
  }
}

Result<void> HttpServer::listen() {
  if (passed_.empty()) {
    TRY(bind_to_free_port());
  } else {
    adopt_all();
  }
  for (auto& listener : listeners_) listener->run();
  for (auto& listener : listeners_) listener->wait_until_ready();
  return {};
}

void HttpServer::stop(std::chrono::milliseconds drain) {
  const std::lock_guard lock(stop_mutex_);
  if (std::exchange(stopped_, true)) return;
  const auto began = Clock::now();
  for (auto& listener : listeners_) listener->close_socket();
  core_.begin_stop();
  core_.host.drain(drain);
  if (core_.music)
    core_.music->stop(std::max(drain - std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began),
                               std::chrono::milliseconds(0)));
  core_.table.wait_until_empty(kCloseGrace);
  core_.table.shut_down_all();
  for (auto& listener : listeners_) listener->join();
}

}  // namespace

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, ModelHost& host, MusicService* music) {
  std::vector<ListenAddress> passed;
  if (!options.sockets.empty()) options.hosts.clear();
  for (const int socket : options.sockets) {
    TRY_ASSIGN(ListenAddress address, address_of(socket));
    options.hosts.push_back(address.host);
    passed.push_back(std::move(address));
  }
  TRY(check_listen_options(options));
  const bool loopback = listens_locally(options);
  TRY_ASSIGN(ServerFiles files, ServerFiles::open(options));
  auto server =
      std::make_unique<HttpServer>(std::move(options), std::move(passed), host, music, loopback, std::move(files));
  TRY(server->listen());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace hocket
