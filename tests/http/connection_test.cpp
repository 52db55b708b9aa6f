// Connections that are slow, half closed, abandoned, too many, or in the way of a shutdown.
#include <atomic>
#include <thread>

#include "http/test_server.h"

namespace hocket {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

milliseconds since(steady_clock::time_point start) {
  return std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
}

ServerOptions quick() {
  ServerOptions options;
  options.limits.head_timeout = milliseconds(300);
  options.limits.keep_alive = milliseconds(300);
  options.limits.read_timeout = milliseconds(300);
  options.limits.write_stall = milliseconds(500);
  return options;
}

std::string chat_request(const std::string& extra = "") {
  return TestServer::request("POST", "/v1/chat/completions", chat_body(extra));
}

TEST(SlowClient, AHalfSentHeadIsAnsweredAndClosed) {
  TestServer server(quick());
  RawClient client(server.port());
  client.send("GET /health HTTP/1.1\r\nHo");
  const RawResponse response = client.response();
  EXPECT_EQ(response.status, 408);
  EXPECT_TRUE(client.closed_soon());
}

TEST(SlowClient, DrippingBytesDoNotExtendTheDeadline) {
  TestServer server(quick());
  RawClient client(server.port());
  const auto start = steady_clock::now();
  bool ended = false;
  client.send("GET / HTTP/1.1\r\nA: ");
  while (!ended && since(start) < kSoon) {
    client.send("x");
    ended = client.receive(milliseconds(50));
  }
  EXPECT_TRUE(ended);
  EXPECT_EQ(client.response().status, 408);
}

TEST(SlowClient, SilentAndIdleConnectionsAreClosed) {
  TestServer server(quick());
  RawClient silent(server.port());
  EXPECT_TRUE(silent.closed_soon());
  RawClient idle(server.port());
  idle.send(TestServer::request("GET", "/health"));
  EXPECT_EQ(idle.response().status, 200);
  EXPECT_TRUE(idle.closed_soon());
}

TEST(SlowClient, ABodyThatStopsOrDripsIsRefused) {
  TestServer server(quick());
  const std::string head =
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n";
  RawClient stopped(server.port());
  stopped.send(head + "{");
  EXPECT_EQ(stopped.response().status, 408);

  ServerOptions options;
  options.limits.body_grace = milliseconds(300);
  TestServer rated(options);
  RawClient dripping(rated.port());
  dripping.send(head + "{");
  const auto start = steady_clock::now();
  while (since(start) < kSoon && dripping.input().empty()) {
    dripping.send(" ");
    dripping.receive(milliseconds(30));
  }
  EXPECT_EQ(dripping.response().status, 408);
}

TEST(SlowClient, AReaderThatTakesNothingIsDroppedAndCanceled) {
  TestServer server(quick());
  server.service->text = std::string(200'000, 'x');
  server.service->chat_script = [&](const ChatRequest&) {
    std::vector<ScriptStep> script;
    for (int i = 0; i < 200; ++i)
      script.push_back({ReplyEvent(FakeChatService::content(std::string(100'000, 'x'))), {}});
    return script;
  };
  RawClient client(server.port(), 4096);
  client.send(chat_request("\"stream\":true"));
  EXPECT_TRUE(TestServer::eventually([&] { return server.service->n_cancelled() == 1; }));
  EXPECT_TRUE(TestServer::eventually([&] { return server.server->n_connections() == 0; }));
}

TEST(Pipelining, AnswersComeInOrder) {
  TestServer server;
  RawClient client(server.port());
  client.send("\r\n" + TestServer::request("GET", "/health") + chat_request() +
              TestServer::request("GET", "/v1/models/nope"));
  EXPECT_EQ(client.response().body, R"({"status":"ok"})");
  EXPECT_EQ(TestServer::parse(client.response().body)["object"], "chat.completion");
  EXPECT_EQ(client.response().status, 404);
}

TEST(Disconnect, AStreamIsCanceled) {
  TestServer server;
  server.service->step = milliseconds(20);
  server.service->text = std::string();
  for (int i = 0; i < 10'000; ++i) server.service->text += "w ";
  RawClient client(server.port());
  client.send(chat_request("\"stream\":true"));
  ASSERT_TRUE(client.receive_until("content\":\"w"));
  client.close();
  EXPECT_TRUE(TestServer::eventually([&] { return server.service->n_cancelled() == 1; }));
}

TEST(Disconnect, ASilentStreamIsCanceled) {
  TestServer server;
  server.service->step = std::chrono::seconds(60);
  RawClient client(server.port());
  client.send(chat_request("\"stream\":true"));
  ASSERT_TRUE(client.receive_until("\r\n\r\n"));
  client.close();
  EXPECT_TRUE(TestServer::eventually([&] { return server.service->n_cancelled() == 1; }));
}

TEST(Disconnect, AWaitingBodyIsCanceled) {
  TestServer server;
  server.service->step = std::chrono::seconds(60);
  RawClient client(server.port());
  client.send(chat_request());
  ASSERT_TRUE(TestServer::eventually([&] { return server.service->n_active() == 1; }));
  client.close();
  EXPECT_TRUE(TestServer::eventually([&] { return server.service->n_cancelled() == 1; }));
}

TEST(Disconnect, EmbeddingsAreCanceled) {
  TestServer server;
  std::atomic<int> state{0};
  server.service->on_embed = [&](const EmbeddingRequest&, CancelToken cancel) -> Result<EmbeddingResult> {
    state = 1;
    while (!cancel.cancelled()) std::this_thread::sleep_for(milliseconds(1));
    state = 2;
    return Error(ErrorCode::kCancelled, "canceled");
  };
  RawClient client(server.port());
  client.send(TestServer::request("POST", "/v1/embeddings", R"({"model":"fake","input":"x"})"));
  ASSERT_TRUE(TestServer::eventually([&] { return state == 1; }));
  client.close();
  EXPECT_TRUE(TestServer::eventually([&] { return state == 2; }));
}

TEST(HalfClosed, IsNoDisconnect) {
  TestServer server;
  server.service->step = milliseconds(150);
  for (const char* extra : {"", "\"stream\":true"}) {
    RawClient client(server.port());
    client.send(chat_request(extra));
    client.shut_down_sending();
    const RawResponse response = client.response();
    EXPECT_EQ(response.status, 200);
    EXPECT_TRUE(response.complete);
    EXPECT_NE(response.body.find("three"), std::string::npos);
  }
  EXPECT_EQ(server.service->n_cancelled(), 0u);
}

TEST(Cancel, ByIdEndsStreamsAndBodies) {
  TestServer server;
  server.service->step = std::chrono::seconds(60);
  RawClient stream(server.port()), body(server.port());
  stream.send(
      TestServer::request("POST", "/v1/chat/completions", chat_body("\"stream\":true"), "X-Request-Id: s1\r\n"));
  body.send(TestServer::request("POST", "/v1/chat/completions", chat_body(), "X-Request-Id: b1\r\n"));
  ASSERT_TRUE(TestServer::eventually([&] { return server.service->n_active() == 2; }));
  const Json status = server.json("GET", "/v1/generation/status");
  EXPECT_EQ(status["n_running"], 2);
  EXPECT_EQ(status["requests"][0]["id"], "b1");
  EXPECT_EQ(server.call("POST", "/v1/cancel", R"({"request_id":"s1"})").status, 200);
  EXPECT_EQ(server.call("POST", "/v1/cancel", R"({"request_id":"b1"})").status, 200);

  const RawResponse streamed = stream.response();
  EXPECT_NE(streamed.body.find("\"code\":\"request_cancelled\""), std::string::npos) << streamed.body;
  EXPECT_EQ(streamed.body.find("[DONE]"), std::string::npos);
  const RawResponse answered = body.response();
  EXPECT_EQ(answered.status, 499);
  EXPECT_EQ(answered.header("x-should-retry"), "false");
  EXPECT_EQ(server.call("POST", "/v1/cancel", R"({"request_id":"b1"})").status, 404);
}

TEST(Load, HealthAndControlAnswerAtOnceBesideFiftyStreams) {
  TestServer server;
  server.service->step = milliseconds(20);
  server.service->text = std::string();
  for (int i = 0; i < 10'000; ++i) server.service->text += "w ";
  std::vector<RawClient> clients;
  for (int i = 0; i < 50; ++i) {
    clients.emplace_back(server.port());
    clients.back().send(chat_request("\"stream\":true"));
  }
  ASSERT_TRUE(TestServer::eventually([&] { return server.service->n_active() == 50; }));
  for (int i = 0; i < 5; ++i) {
    const auto start = steady_clock::now();
    EXPECT_EQ(server.call("GET", "/health").status, 200);
    EXPECT_EQ(server.json("GET", "/v1/generation/status")["n_running"], 50);
    EXPECT_LT(since(start), kSoon) << "the streams go on for minutes";
  }
  for (RawClient& client : clients) client.close();
  EXPECT_TRUE(TestServer::eventually([&] { return server.service->n_active() == 0; }));
}

TEST(Caps, BeyondThemOnlyHealthAndControlAreServed) {
  ServerOptions options;
  options.limits.max_connections_per_address = 3;
  options.limits.reserved_connections = 2;
  TestServer server(options);
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(server.port());
    clients.back().send(TestServer::request("GET", "/health"));
    ASSERT_EQ(clients.back().response().status, 200);
  }
  const RawResponse busy = server.call("GET", "/v1/models");
  EXPECT_EQ(busy.status, 429);
  EXPECT_NE(busy.header("Retry-After"), "");
  EXPECT_TRUE(TestServer::eventually([&] { return server.server->n_connections() == 3; }));
  const RawResponse health = server.call("GET", "/health");
  EXPECT_EQ(health.status, 200);
  EXPECT_EQ(health.header("Connection"), "close");
  EXPECT_TRUE(TestServer::eventually([&] { return server.server->n_connections() == 3; }));
  RawClient first(server.port()), second(server.port());
  ASSERT_TRUE(TestServer::eventually([&] { return server.server->n_connections() == 5; }));
  RawClient third(server.port());
  EXPECT_TRUE(third.closed_soon());
  clients.pop_back();
  EXPECT_TRUE(TestServer::eventually([&] { return server.call("GET", "/v1/models").status == 200; }));
}

TEST(Stop, DrainsRunningRepliesAndRefusesNewOnes) {
  TestServer server;
  server.service->step = milliseconds(100);
  RawClient running(server.port()), idle(server.port());
  idle.send(TestServer::request("GET", "/health"));
  ASSERT_EQ(idle.response().status, 200);
  running.send(chat_request("\"stream\":true"));
  ASSERT_TRUE(running.receive_until("one"));
  const auto start = steady_clock::now();
  std::thread stopper([&] { server.server->stop(std::chrono::seconds(60)); });
  EXPECT_TRUE(idle.closed_soon());
  EXPECT_TRUE(running.response().body.ends_with("data: [DONE]\n\n"));
  stopper.join();
  EXPECT_LT(since(start), kSoon);
  EXPECT_FALSE(RawClient(server.port()).connected());
  EXPECT_EQ(server.service->n_cancelled(), 0u);
}

TEST(Stop, EndsWhatOutlastsTheDrainWithAnError) {
  TestServer server;
  server.service->step = std::chrono::seconds(60);
  RawClient stream(server.port()), body(server.port()), silent(server.port());
  stream.send(chat_request("\"stream\":true"));
  body.send(chat_request());
  ASSERT_TRUE(TestServer::eventually([&] { return server.service->n_active() == 2; }));
  const auto start = steady_clock::now();
  server.server->stop(milliseconds(100));
  EXPECT_LT(since(start), kSoon);
  const RawResponse streamed = stream.response();
  EXPECT_NE(streamed.body.find("\"error\""), std::string::npos);
  EXPECT_EQ(streamed.body.find("[DONE]"), std::string::npos);
  EXPECT_EQ(body.response().status, 499);
}

}  // namespace
}  // namespace hocket
