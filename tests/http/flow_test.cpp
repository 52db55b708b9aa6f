// Calls that steer running requests, and what tells about the cache.
#include "http/test_server.h"

namespace hocket {
namespace {

class FlowCalls : public ::testing::Test {
 protected:
  // A stream that runs until the test ends.
  void SetUp() override {
    server_.service->text = std::string(400, 'x');
    for (std::size_t i = 1; i < server_.service->text.size(); i += 2) server_.service->text[i] = ' ';
    server_.service->step = std::chrono::milliseconds(50);
    client_.send(
        TestServer::request("POST", "/v1/chat/completions", chat_body(R"("stream":true)"), "X-Request-Id: run-1\r\n"));
    ASSERT_TRUE(TestServer::eventually([&] { return server_.service->n_active() == 1; }));
  }

  TestServer server_;
  RawClient client_{server_.port()};
};

TEST_F(FlowCalls, ReachTheService) {
  EXPECT_EQ(server_.call("POST", "/v1/flow/ack", R"({"request_id":"run-1","sequence":3})").body,
            R"({"request_id":"run-1","acknowledged":true})");
  EXPECT_EQ(server_.call("POST", "/v1/generation/pause", R"({"request_id":"run-1"})").body,
            R"({"request_id":"run-1","paused":true})");
  EXPECT_EQ(server_.call("POST", "/v1/generation/resume", R"({"request_id":"run-1"})").body,
            R"({"request_id":"run-1","resumed":true})");
  EXPECT_EQ(server_.service->notes(), (std::vector<std::string>{"ack run-1 3", "pause run-1 0", "resume run-1 0"}));
}

TEST_F(FlowCalls, UnknownAndWrongOnes) {
  for (const char* path : {"/v1/flow/ack", "/v1/generation/pause", "/v1/generation/resume"}) {
    const std::string extra = std::string(path) == "/v1/flow/ack" ? R"(,"sequence":1)" : "";
    const auto unknown = server_.call("POST", path, R"({"request_id":"nobody")" + extra + "}");
    EXPECT_EQ(unknown.status, 404);
    EXPECT_EQ(TestServer::parse(unknown.body)["error"]["code"], "request_not_found");
    const auto empty = server_.call("POST", path, R"({"request_id":"")" + extra + "}");
    EXPECT_EQ(empty.status, 400);
    EXPECT_EQ(TestServer::parse(empty.body)["error"]["param"], "request_id");
    const auto more = server_.call("POST", path, R"({"request_id":"run-1","who":1)" + extra + "}");
    EXPECT_EQ(TestServer::parse(more.body)["error"]["param"], "who");
  }
  const auto without = server_.call("POST", "/v1/flow/ack", R"({"request_id":"run-1"})");
  EXPECT_EQ(TestServer::parse(without.body)["error"]["param"], "sequence");
  const auto negative = server_.call("POST", "/v1/flow/ack", R"({"request_id":"run-1","sequence":-1})");
  EXPECT_EQ(negative.status, 400);
}

TEST(FlowChunks, CarryTheirNumbers) {
  TestServer server;
  server.service->chat_script = [](const ChatRequest& request) {
    EXPECT_EQ(request.serving.flow_window, 4u);
    EXPECT_TRUE(request.serving.reuse_generated_state);
    EXPECT_FALSE(request.serving.cache_prompt);
    DeltaEvent event = FakeChatService::content("hm");
    event.sequence = 7;
    return std::vector<ScriptStep>{{ReplyEvent(event), {}},
                                   {ReplyEvent(ChoiceFinished{0, FinishReason::kStop, ""}), {}},
                                   {ReplyEvent(FakeChatService::done()), {}}};
  };
  const std::string body = chat_body(
      R"("stream":true,"flow_control":"ack","flow_window":4,"reuse_generated_state":true,"cache_prompt":false)");
  const auto response = server.call("POST", "/v1/chat/completions", body, "X-Request-Id: mine\r\n");
  EXPECT_NE(response.body.find(R"("hocket_flow":{"request_id":"mine","sequence":7})"), std::string::npos)
      << response.body;
}

TEST(FlowChunks, NeedAStream) {
  TestServer server;
  const auto without = server.call("POST", "/v1/chat/completions", chat_body(R"("flow_control":"ack")"));
  EXPECT_EQ(without.status, 400);
  EXPECT_EQ(TestServer::parse(without.body)["error"]["param"], "flow_control");
  const auto window = server.call("POST", "/v1/chat/completions", chat_body(R"("stream":true,"flow_window":2)"));
  EXPECT_EQ(TestServer::parse(window.body)["error"]["param"], "flow_window");
}

TEST(CacheCalls, TellAndClear) {
  TestServer server;
  CacheReport& report = server.service->editable_cache();
  report.prefixes.n_entries = 3;
  report.prefixes.n_tokens = 50;
  report.prefixes.n_found[static_cast<std::size_t>(CacheStatus::kExactPrompt)] = 2;
  report.resident_bytes = 1000;
  Json status = server.json("GET", "/v1/cache/status");
  EXPECT_EQ(status["entries"], 3);
  EXPECT_EQ(status["tokens"], 50);
  EXPECT_EQ(status["resident_bytes"], 1000);
  EXPECT_EQ(status["prompts"]["exact_prompt_hit"], 2);
  EXPECT_EQ(status["persistent"], false);
  EXPECT_NE(server.call("GET", "/metrics").body.find("hocket_cache_tokens{model=\"org/fake:1b\"} 50"),
            std::string::npos);
  EXPECT_EQ(server.call("POST", "/v1/cache/clear", R"({"all":true})").status, 400);
  EXPECT_EQ(server.call("POST", "/v1/cache/clear", "{}").body, R"({"cleared":true,"sessions":0})");
  status = server.json("GET", "/v1/cache/status");
  EXPECT_EQ(status["entries"], 0);
}

}  // namespace
}  // namespace hocket
