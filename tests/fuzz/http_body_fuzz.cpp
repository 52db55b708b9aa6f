// Any body at all, in parts or as JSON, gets an answer from a real server: never one of 500, never none.
//
// The first byte picks the endpoint, the rest is the body; parts are divided by "B". The services behind are fakes.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "http/server.h"
#include "support/fake_chat_service.h"
#include "support/fake_music_service.h"
#include "support/raw_http.h"

namespace hocket {
namespace {

struct Target {
  const char* path;
  const char* type;
};
constexpr const char* kForm = "multipart/form-data; boundary=B";
constexpr const char* kJson = "application/json";
constexpr Target kTargets[] = {{"/synth", kForm},
                               {"/understand", kForm},
                               {"/vae", kForm},
                               {"/lm", kJson},
                               {"/synth", kJson},
                               {"/v1/audio/generations", kJson},
                               {"/v1/chat/completions", kJson},
                               {"/v1/completions", kJson},
                               {"/v1/embeddings", kJson}};

// What was read well is refused by the service, so that nothing piles up.
struct Fixture {
  std::shared_ptr<FakeChatService> chat = std::make_shared<FakeChatService>();
  FakeHost host{chat};
  FakeMusicService music;
  std::unique_ptr<Server> server;

  Fixture() {
    Error busy(ErrorCode::kBusy, "busy");
    chat->refuse = busy;
    music.refuse = busy;
    ServerOptions options;
    options.port = 0;
    auto started = Server::start(std::move(options), host, &music);
    CHECK(started.ok());
    server = std::move(*started);
  }
};

}  // namespace
}  // namespace hocket

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, std::size_t n) {
  using namespace hocket;
  static Fixture fixture;
  if (n == 0) return 0;
  const Target& target = kTargets[bytes[0] % std::size(kTargets)];
  const std::string body(reinterpret_cast<const char*>(bytes) + 1, n - 1);
  RawClient client(fixture.server->port());
  CHECK(client.connected());
  // The server may answer, and close, before it has seen all of a body that it refuses.
  client.send("POST " + std::string(target.path) +
              " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: " + target.type +
              "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  const RawResponse response = client.response();
  CHECK(response.complete);
  CHECK(response.status == 200 || (response.status >= 400 && response.status < 500) || response.status == 503);
  const auto json = parse_json(response.body);
  CHECK(json.ok() && json->is_object());
  if (response.status != 200) CHECK(json->at("error").at("message").is_string());
  return 0;
}
