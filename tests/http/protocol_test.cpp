// HTTP itself: paths, methods, keys, origins, ids and request heads.
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <set>

#include "http/listen_address.h"
#include "http/request_head.h"
#include "http/test_server.h"
#include "support/temp_folder.h"

namespace hocket {
namespace {

Json error_of(const RawResponse& response) {
  return TestServer::parse(response.body)["error"];
}

TEST(Paths, UnknownPathsAndWrongMethods) {
  TestServer server;
  EXPECT_EQ(server.call("GET", "/").status, 200);
  const RawResponse missing = server.call("GET", "/v1/nothing");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(error_of(missing)["type"], "invalid_request_error");
  EXPECT_EQ(server.call("POST", "/v1/models/", "{}").status, 404);
  for (const auto& [method, path, allow] :
       std::vector<std::array<std::string, 3>>{{"GET", "/v1/chat/completions", "POST, OPTIONS"},
                                               {"DELETE", "/v1/models", "GET, HEAD, OPTIONS"},
                                               {"POST", "/health", "GET, HEAD, OPTIONS"},
                                               {"PUT", "/v1/models/x", "GET, HEAD, OPTIONS"}}) {
    const RawResponse response = server.call(method, path);
    EXPECT_EQ(response.status, 405) << method << " " << path;
    EXPECT_EQ(response.header("Allow"), allow);
    EXPECT_EQ(error_of(response)["code"], "method_not_allowed");
  }
  const RawResponse head = server.call("HEAD", "/health");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("Content-Length"), "15");
  EXPECT_EQ(server.raw("BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 501);
  EXPECT_EQ(server.raw("GET / HTTP/2.0\r\nHost: localhost\r\n\r\n").status, 505);
}

TEST(Bodies, TypeCodingAndSize) {
  ServerOptions options;
  options.limits.max_body_bytes = 1000;
  TestServer server(options);
  const auto post = [&](const std::string& headers, const std::string& body) {
    return server.raw("POST /tokenize HTTP/1.1\r\nHost: localhost\r\n" + headers +
                      "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  };
  const std::string body = R"({"content":"x"})";
  EXPECT_EQ(post("Content-Type: application/json; charset=utf-8\r\n", body).status, 200);
  EXPECT_EQ(post("", body).status, 200);
  EXPECT_EQ(post("Origin: http://evil.example\r\n", body).status, 415);
  EXPECT_EQ(post("Content-Type: text/plain\r\n", body).status, 415);
  EXPECT_EQ(post("Content-Type: application/x-www-form-urlencoded\r\n", body).status, 415);
  EXPECT_EQ(post("Content-Type: application/json; charset=utf-16\r\n", body).status, 415);
  EXPECT_EQ(post("Content-Type: application/json\r\nContent-Encoding: gzip\r\n", body).status, 415);

  const std::string large = R"({"content":")" + std::string(1000, 'x') + "\"}";
  const RawResponse refused = post("Content-Type: application/json\r\n", large);
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(error_of(refused)["code"], "request_too_large");
  const std::string chunked =
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: "
      "chunked\r\n\r\n";
  EXPECT_EQ(server.raw(chunked + "f\r\n" + body + "\r\n0\r\n\r\n").status, 200);
  const RawResponse too_long = server.raw(chunked + "7d0\r\n" + std::string(2000, 'x') + "\r\n0\r\n\r\n");
  EXPECT_EQ(too_long.status, 413);
  EXPECT_EQ(error_of(too_long)["code"], "request_too_large");
  EXPECT_EQ(server.raw(chunked + "zz\r\n").status, 400);
}

TEST(Keys, EverythingButHealthNeedsOne) {
  ServerOptions options;
  options.api_keys = {"sesame", "second-key"};
  TestServer server(options);
  for (const char* path : {"/health", "/livez", "/readyz", "/"}) EXPECT_EQ(server.call("GET", path).status, 200);
  for (const char* headers : {"", "Authorization: Bearer wrong\r\n", "Authorization: Bearer sesam\r\n",
                              "x-api-key: sesamee\r\n", "Authorization: sesame\r\n", "Authorization: Bearer \r\n"}) {
    const RawResponse denied = server.call("GET", "/v1/models", "", headers);
    EXPECT_EQ(denied.status, 401) << headers;
    EXPECT_EQ(denied.header("WWW-Authenticate"), "Bearer");
    EXPECT_EQ(error_of(denied)["code"], "invalid_api_key");
  }
  for (const char* headers :
       {"Authorization: Bearer sesame\r\n", "authorization: bearer second-key\r\n", "X-Api-Key: second-key\r\n"})
    EXPECT_EQ(server.call("GET", "/v1/models", "", headers).status, 200) << headers;
  EXPECT_EQ(server.call("OPTIONS", "/v1/models").status, 204);

  EXPECT_FALSE(server.server->set_api_keys({}).ok());
  ASSERT_TRUE(server.server->set_api_keys({"third"}).ok());
  EXPECT_EQ(server.call("GET", "/v1/models", "", "Authorization: Bearer sesame\r\n").status, 401);
  EXPECT_EQ(server.call("GET", "/v1/models", "", "Authorization: Bearer third\r\n").status, 200);
}

TEST(Cors, ReflectsAllowedOriginsOnly) {
  ServerOptions options;
  options.cors_origins = {"https://app.example"};
  TestServer server(options);
  const RawResponse good = server.call("OPTIONS", "/v1/chat/completions", "",
                                       "Origin: https://app.example\r\nAccess-Control-Request-Method: POST\r\n"
                                       "Access-Control-Request-Headers: authorization,x-stainless-os, x-evil\r\n");
  EXPECT_EQ(good.status, 204);
  EXPECT_EQ(good.header("Access-Control-Allow-Origin"), "https://app.example");
  EXPECT_EQ(good.header("Access-Control-Allow-Methods"), "POST, OPTIONS");
  EXPECT_EQ(good.header("Vary"), "Origin");
  EXPECT_EQ(good.header("Access-Control-Allow-Credentials"), "");
  const std::string allowed = good.header("Access-Control-Allow-Headers");
  for (const char* name : {"authorization", "content-type", "x-api-key", "x-stainless-os"})
    EXPECT_NE(allowed.find(name), std::string::npos) << allowed;
  EXPECT_EQ(allowed.find("x-evil"), std::string::npos);

  const RawResponse bad = server.call("OPTIONS", "/v1/models", "", "Origin: https://evil.example\r\n");
  EXPECT_EQ(bad.header("Access-Control-Allow-Origin"), "");
  EXPECT_EQ(
      server.call("GET", "/v1/models", "", "Origin: https://app.example\r\n").header("Access-Control-Allow-Origin"),
      "https://app.example");
  TestServer closed;
  EXPECT_EQ(
      closed.call("GET", "/v1/models", "", "Origin: https://app.example\r\n").header("Access-Control-Allow-Origin"),
      "");
}

TEST(HostHeader, MustNameThisMachine) {
  ServerOptions options;
  options.allowed_hosts = {"my.proxy"};
  TestServer server(options);
  for (const char* host : {"localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]:9", "127.8.8.8", "my.proxy:443"})
    EXPECT_EQ(server.raw(std::string("GET /health HTTP/1.1\r\nHost: ") + host + "\r\n\r\n").status, 200) << host;
  for (const char* host : {"evil.example", "127.0.0.1.evil.example", "10.0.0.1", ""})
    EXPECT_EQ(server.raw(std::string("GET /health HTTP/1.1\r\nHost: ") + host + "\r\n\r\n").status, 403) << host;
}

TEST(RequestIds, TheClientsOrARandomOne) {
  TestServer server;
  EXPECT_EQ(server.call("GET", "/health", "", "X-Request-Id: a.B_c-9\r\n").header("X-Request-Id"), "a.B_c-9");
  std::set<std::string> ids;
  for (const std::string& bad : {std::string("a b"), std::string("x/y"), std::string(129, 'x')})
    ids.insert(server.call("GET", "/health", "", "X-Request-Id: " + bad + "\r\n").header("X-Request-Id"));
  ids.insert(server.call("GET", "/health").header("X-Request-Id"));
  EXPECT_EQ(ids.size(), 4u);
  for (const std::string& id : ids) EXPECT_EQ(id.size(), 32u) << id;
}

TEST(Heads, AreCheckedBeforeTheyAreParsed) {
  const HttpLimits limits;
  const auto status = [&](const std::string& head) {
    const auto fault = check_head(head, limits);
    return fault ? fault->status : 200;
  };
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
  EXPECT_EQ(status("GET /\r\n\r\n"), 400);
  EXPECT_EQ(status("GET  / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status(std::string("GET / HTTP/1.1\r\nA: \0\r\n\r\n", 25)), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nA: b\rc\r\n\r\n"), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\n folded\r\n\r\n"), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nA : b\r\n\r\n"), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nno colon\r\n\r\n"), 400);
  EXPECT_EQ(status("GET /" + std::string(8192, 'x') + " HTTP/1.1\r\n\r\n"), 414);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nA: " + std::string(8192, 'x') + "\r\n\r\n"), 431);
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 100; ++i) many += "A: b\r\n";
  EXPECT_EQ(status(many + "\r\n"), 200);
  EXPECT_EQ(status(many + "A: b\r\n\r\n"), 431);
  std::string big = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 9; ++i) big += "A: " + std::string(8000, 'x') + "\r\n";
  EXPECT_EQ(status(big + "\r\n"), 431);
}

TEST(Heads, FaultsAreAnswered) {
  TestServer server;
  const RawResponse long_target = server.raw("GET /" + std::string(9000, 'x') + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(long_target.status, 414);
  EXPECT_EQ(error_of(long_target)["code"], "uri_too_long");
  EXPECT_EQ(server.raw("GET / HTTP/1.1\r\nHost: localhost\r\nA: " + std::string(9000, 'x') + "\r\n\r\n").status, 431);
  EXPECT_EQ(server.raw("\x16\x03\x01\x02").status, 400);  // TLS to a plain port
  EXPECT_EQ(
      server
          .raw("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
               "Transfer-Encoding: chunked\r\n\r\n{}")
          .status,
      400);
}

TEST(Listening, OtherMachinesNeedAKey) {
  auto service = std::make_shared<FakeChatService>();
  FakeHost host(service);
  ServerOptions options;
  options.port = 0;
  options.hosts = {"0.0.0.0"};
  const auto refused = Server::start(options, host);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().param, "host");
  options.insecure = true;
  EXPECT_TRUE(Server::start(options, host).ok());
  options.insecure = false;
  options.api_keys = {"k"};
  auto open = Server::start(options, host);
  ASSERT_TRUE(open.ok());
  // The port is taken now: another server must not share it.
  options.port = (*open)->port();
  const auto taken = Server::start(options, host);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, ErrorCode::kIo);
  options.hosts = {"203.0.113.7"};
  options.port = 0;
  EXPECT_FALSE(Server::start(options, host).ok());
}

TEST(Listening, LocalhostAndUnixSockets) {
  ServerOptions options;
  options.hosts = {"localhost"};
  TestServer both(options);
  EXPECT_EQ(both.call("GET", "/health").status, 200);
  EXPECT_GE(both.server->urls().size(), 1u);

  const TempFolder folder;
  const std::string path = folder.file("http.sock");
  for (int round = 0; round < 2; ++round) {
    auto service = std::make_shared<FakeChatService>();
    FakeHost host(service);
    options.hosts = {path};
    auto server = Server::start(options, host);
    ASSERT_TRUE(server.ok()) << server.error().message;
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size());
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    RawClient client(fd, nullptr);
    client.send(TestServer::request("GET", "/health"));
    EXPECT_EQ(client.response().status, 200);
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  // What a killed server leaves behind is no obstacle.
  {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size());
    ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    close(fd);
    EXPECT_TRUE(prepare_unix_path(path).ok());
    EXPECT_NE(access(path.c_str(), F_OK), 0);
  }
}

}  // namespace
}  // namespace hocket
