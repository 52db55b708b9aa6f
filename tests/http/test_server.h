// tests/http/test_server.h: a real server on a free loopback port over a FakeChatService.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "http/server.h"
#include "support/fake_chat_service.h"
#include "support/raw_http.h"

namespace hocket {

class TestServer {
 public:
  explicit TestServer(ServerOptions options = {},
                      std::shared_ptr<FakeChatService> fake = std::make_shared<FakeChatService>(),
                      MusicService* music = nullptr)
      : service(std::move(fake)), host(service) {
    options.port = 0;
    auto started = Server::start(std::move(options), host, music);
    if (!started) {
      ADD_FAILURE() << started.error().message;
      std::abort();
    }
    server = std::move(*started);
  }

  int port() const { return server->port(); }
  static std::string request(const std::string& method, const std::string& path, const std::string& body = "",
                             const std::string& headers = "") {
    std::string text = method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers;
    if (method == "POST")
      text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
    return text + "\r\n" + body;
  }
  RawResponse call(const std::string& method, const std::string& path, const std::string& body = "",
                   const std::string& headers = "") const {
    return raw(request(method, path, body, headers), method == "HEAD");
  }
  RawResponse raw(const std::string& bytes, bool head_only = false) const {
    RawClient client(port());
    client.send(bytes);
    return client.response(head_only);
  }
  Json json(const std::string& method, const std::string& path, const std::string& body = "") const {
    return parse(call(method, path, body).body);
  }
  static Json parse(const std::string& text) {
    auto value = parse_json(text);
    EXPECT_TRUE(value.ok()) << text;
    return value ? *value : Json();
  }
  // True as soon as `condition` holds; false after kSoon.
  template <class Condition>
  static bool eventually(Condition condition) {
    const auto until = std::chrono::steady_clock::now() + kSoon;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

  std::shared_ptr<FakeChatService> service;
  FakeHost host;
  std::unique_ptr<Server> server;
};

// {"model":"fake","messages":[…],EXTRA}
inline std::string chat_body(const std::string& extra = "") {
  return R"({"model":"fake","messages":[{"role":"user","content":"hi"}])" + (extra.empty() ? "" : "," + extra) + "}";
}

}  // namespace hocket
