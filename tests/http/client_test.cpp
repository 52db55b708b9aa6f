// Requests to a server, and its events, cut anywhere.
#include "http/client.h"

#include <thread>

#include "http/sse_reader.h"
#include "http/test_server.h"
#include "support/temp_folder.h"

namespace hocket {
namespace {

std::string url_of(const TestServer& server) {
  return "http://127.0.0.1:" + std::to_string(server.port());
}

TEST(SseReader, EventsAreTheSameWhereverTheyAreCut) {
  const std::string stream =
      ": ping\n\ndata: one\n\ndata:two\r\ndata:  lines\r\n\r\nevent: x\nid: 7\ndata\n\ndata: {\"a\":\"b:c\"}\r\r: "
      "end\n\ndata: cut";
  const std::vector<std::string> expected{"one", "two\n lines", "", "{\"a\":\"b:c\"}"};
  for (std::size_t n = 1; n <= stream.size(); ++n) {
    SseReader reader;
    std::vector<std::string> got;
    for (std::size_t at = 0; at < stream.size(); at += n)
      ASSERT_TRUE(
          reader.take(std::string_view(stream).substr(at, n), [&](const std::string& data) { got.push_back(data); })
              .ok());
    EXPECT_EQ(got, expected) << n;
  }
}

TEST(SseReader, AnEventHasABound) {
  SseReader reader;
  Result<void> taken;
  for (int i = 0; i < 40 && taken; ++i) taken = reader.take(std::string(1 << 20, 'x'), [](const std::string&) {});
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, ErrorCode::kPeer);
}

TEST(HttpClient, GetsAndPosts) {
  TestServer server;
  const auto client = HttpClient::open(url_of(server) + "/", "");
  ASSERT_TRUE(client.ok());
  for (int i = 0; i < 3; ++i) {
    const auto health = (*client)->get("/health");
    ASSERT_TRUE(health.ok()) << health.error().message;
    EXPECT_EQ(health->status, 200);
    EXPECT_EQ(health->body, R"({"status":"ok"})");
  }
  const auto missing = (*client)->get("/nowhere");
  ASSERT_TRUE(missing.ok());
  EXPECT_EQ(missing->status, 404);
  EXPECT_EQ(TestServer::parse(missing->body)["error"]["code"], "not_found");
  const auto whole = (*client)->post("/v1/chat/completions", chat_body(), [](std::string_view) { return false; });
  ASSERT_TRUE(whole.ok());  // no stream, so nobody asks
  EXPECT_NE(whole->body.find("one two three"), std::string::npos);
}

TEST(HttpClient, StreamsAndIsStopped) {
  TestServer server;
  server.service->text = "a b c d e f g h i j k l m n o p";
  server.service->step = std::chrono::milliseconds(20);
  auto opened = HttpClient::open(url_of(server), "");
  ASSERT_TRUE(opened.ok());
  std::string got;
  const auto all = (*opened)->post("/v1/chat/completions", chat_body(R"("stream":true)"), [&](std::string_view bytes) {
    got += bytes;
    return true;
  });
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->body, "");
  EXPECT_TRUE(got.ends_with("data: [DONE]\n\n"));
  // Stopped while nothing comes.
  server.service->step = std::chrono::seconds(60);
  std::thread other([&] {
    EXPECT_TRUE(TestServer::eventually([&] { return server.service->n_active() == 1; }));
    (*opened)->stop();
  });
  const auto stopped =
      (*opened)->post("/v1/chat/completions", chat_body(R"("stream":true)"), [](std::string_view) { return true; });
  other.join();
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(TestServer::eventually([&] { return server.service->n_active() == 0; }));
}

TEST(HttpClient, SendsItsKey) {
  ServerOptions options;
  options.api_keys = {"sesame"};
  TestServer server(options);
  EXPECT_EQ((*HttpClient::open(url_of(server), "sesame"))->get("/v1/models")->status, 200);
  EXPECT_EQ((*HttpClient::open(url_of(server), "barley"))->get("/v1/models")->status, 401);
  EXPECT_EQ((*HttpClient::open(url_of(server), ""))->get("/v1/models")->status, 401);
}

TEST(HttpClient, ReachesUnixSockets) {
  const TempFolder folder;
  ServerOptions options;
  options.hosts = {(folder.path() / "h.sock").string()};
  TestServer server(options);
  const auto client = HttpClient::open("unix:" + options.hosts.front(), "");
  ASSERT_TRUE(client.ok());
  EXPECT_EQ((*client)->get("/health")->status, 200);
}

TEST(HttpClient, SaysWhatIsWrongWithAnAddress) {
  for (const char* url : {"", "localhost:8080", "ftp://x", "http://", "http://x/path", "http://user@x", "unix:relative",
                          "http://x:port", "http://x:99999", "https://[::1]:0x50"}) {
    const auto client = HttpClient::open(url, "");
    ASSERT_FALSE(client.ok()) << url;
    EXPECT_EQ(client.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(client.error().param, "url");
  }
  const auto nobody = (*HttpClient::open("http://127.0.0.1:1", ""))->get("/health");
  ASSERT_FALSE(nobody.ok());
  EXPECT_EQ(nobody.error().code, ErrorCode::kIo);
  EXPECT_NE(nobody.error().message.find("http://127.0.0.1:1"), std::string::npos);
}

}  // namespace
}  // namespace hocket
