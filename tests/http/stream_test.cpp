// The exact order and form of streamed events (docs/api.md, "Streams").
#include "http/test_server.h"

namespace hocket {
namespace {

std::vector<std::string> events_of(const std::string& body) {
  std::vector<std::string> events;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = body.find("\n\n", at);
    if (end == std::string::npos) {
      ADD_FAILURE() << "unfinished event: " << body.substr(at);
      break;
    }
    events.push_back(body.substr(at, end - at));
    at = end + 2;
  }
  return events;
}

// The choices of each chunk with ids and times left out; usage and numbers reduced to their presence.
std::vector<std::string> skeleton(const std::string& body) {
  std::vector<std::string> lines;
  for (const std::string& event : events_of(body)) {
    if (!event.starts_with("data: {")) {
      lines.push_back(event);
      continue;
    }
    const Json chunk = TestServer::parse(event.substr(6));
    if (chunk.contains("error")) {
      lines.push_back("error " + dump_json(chunk["error"]["code"]));
      continue;
    }
    std::string line = dump_json(chunk["choices"]);
    if (chunk.contains("usage")) line += chunk["usage"].is_null() ? " usage:null" : " usage";
    if (chunk.contains("timings")) line += " timings";
    if (chunk.contains("hocket")) line += " hocket";
    lines.push_back(line);
  }
  return lines;
}

std::string choice(int index, const std::string& delta, const std::string& reason = "null",
                   const std::string& logprobs = "null") {
  return "[{\"index\":" + std::to_string(index) + ",\"delta\":" + delta + ",\"logprobs\":" + logprobs +
         ",\"finish_reason\":" + reason + "}]";
}
const std::string kRole = R"({"role":"assistant","content":""})";

ScriptStep delta(std::vector<ReplyDelta> deltas, std::size_t index = 0, std::vector<TokenLogprobs> logprobs = {}) {
  DeltaEvent event;
  event.choice = index;
  event.deltas = std::move(deltas);
  event.logprobs = std::move(logprobs);
  return {ReplyEvent(event), {}};
}
ScriptStep finished(std::size_t index, FinishReason reason) {
  return {ReplyEvent(ChoiceFinished{index, reason, ""}), {}};
}
ScriptStep done() {
  return {ReplyEvent(FakeChatService::done()), {}};
}
using Kind = ReplyDelta::Kind;

class Stream : public ::testing::Test {
 protected:
  RawResponse run(std::vector<ScriptStep> script, const std::string& extra = "\"stream\":true") {
    server_.service->chat_script = [script](const ChatRequest&) { return script; };
    return server_.call("POST", "/v1/chat/completions", chat_body(extra));
  }
  TestServer server_;
};

TEST_F(Stream, TextEndsWithNumbersAndDone) {
  const RawResponse response = server_.call("POST", "/v1/chat/completions", chat_body("\"stream\":true"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("Content-Type"), "text/event-stream; charset=utf-8");
  EXPECT_EQ(response.header("Cache-Control"), "no-cache");
  EXPECT_EQ(response.header("X-Accel-Buffering"), "no");
  EXPECT_TRUE(response.complete);
  EXPECT_EQ(skeleton(response.body),
            (std::vector<std::string>{choice(0, kRole), choice(0, R"({"content":"one"})"),
                                      choice(0, R"({"content":" two"})"), choice(0, R"({"content":" three"})"),
                                      choice(0, "{}", "\"stop\"") + " timings hocket", "data: [DONE]"}));
}

TEST_F(Stream, EveryChunkHasTheSameHead) {
  const RawResponse response =
      server_.call("POST", "/v1/chat/completions", chat_body("\"stream\":true"), "X-Request-Id: my.id_1\r\n");
  std::string id;
  for (const std::string& event : events_of(response.body)) {
    if (event == "data: [DONE]") continue;
    const Json chunk = TestServer::parse(event.substr(6));
    if (id.empty()) id = chunk["id"];
    EXPECT_EQ(chunk["id"], id);
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    EXPECT_EQ(chunk["created"], 1700000000);
    EXPECT_EQ(chunk["model"], "org/fake:1b");
    EXPECT_EQ(chunk["system_fingerprint"], "fp_fake");
  }
  EXPECT_TRUE(id.starts_with("chatcmpl-"));
  EXPECT_GE(id.size(), 9u + 24u);  // 96 bits in hexadecimal
  EXPECT_EQ(response.header("X-Request-Id"), "my.id_1");
}

TEST_F(Stream, UsageChunkComesLastAndOthersHaveNull) {
  const RawResponse response = server_.call("POST", "/v1/chat/completions",
                                            chat_body(R"("stream":true,"stream_options":{"include_usage":true})"));
  EXPECT_EQ(
      skeleton(response.body),
      (std::vector<std::string>{
          choice(0, kRole) + " usage:null", choice(0, R"({"content":"one"})") + " usage:null",
          choice(0, R"({"content":" two"})") + " usage:null", choice(0, R"({"content":" three"})") + " usage:null",
          choice(0, "{}", "\"stop\"") + " usage:null", "[] usage timings hocket", "data: [DONE]"}));
}

TEST_F(Stream, ReasoningAndToolCalls) {
  const RawResponse response =
      run({delta({{Kind::kReasoning, "hm", 0, "", ""}}),
           delta({{Kind::kToolCallStart, "", 0, "call_a", "get"}, {Kind::kToolCallArguments, "{\"x\":", 0, "", ""}}),
           delta({{Kind::kToolCallArguments, "1}", 0, "", ""}}),
           delta({{Kind::kToolCallStart, "", 1, "call_b", "put"}}), finished(0, FinishReason::kToolCalls), done()});
  EXPECT_EQ(
      skeleton(response.body),
      (std::vector<std::string>{
          choice(0, kRole), choice(0, R"({"reasoning_content":"hm"})"),
          choice(
              0,
              R"({"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"get","arguments":""}}]})"),
          choice(0, R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":"}}]})"),
          choice(0, R"({"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]})"),
          choice(
              0,
              R"({"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"put","arguments":""}}]})"),
          choice(0, "{}", "\"tool_calls\"") + " timings hocket", "data: [DONE]"}));
}

TEST_F(Stream, SeveralChoices) {
  const RawResponse response =
      run({delta({{Kind::kContent, "a", 0, "", ""}}, 0), delta({{Kind::kContent, "b", 0, "", ""}}, 1),
           finished(0, FinishReason::kStop), delta({{Kind::kContent, "c", 0, "", ""}}, 1),
           finished(1, FinishReason::kLength), done()},
          "\"stream\":true,\"n\":2");
  EXPECT_EQ(skeleton(response.body),
            (std::vector<std::string>{choice(0, kRole), choice(0, R"({"content":"a"})"), choice(1, kRole),
                                      choice(1, R"({"content":"b"})"), choice(0, "{}", "\"stop\""),
                                      choice(1, R"({"content":"c"})"),
                                      choice(1, "{}", "\"length\"") + " timings hocket", "data: [DONE]"}));
}

TEST_F(Stream, Logprobs) {
  const TokenLogprobs token{{5, "\xc3", -0.5}, {{6, "x", -1e9}}};
  const std::string expected =
      R"({"content":[{"token":"�","logprob":-0.5,"bytes":[195],"top_logprobs":[{"token":"x","logprob":-9999.0,"bytes":[120]}]}],"refusal":null})";
  const RawResponse response = run({delta({}, 0, {token}), delta({{Kind::kContent, "é", 0, "", ""}}, 0, {token}),
                                    finished(0, FinishReason::kStop), done()},
                                   R"("stream":true,"logprobs":true,"top_logprobs":1)");
  EXPECT_EQ(skeleton(response.body),
            (std::vector<std::string>{choice(0, kRole), choice(0, "{}", "null", expected),
                                      choice(0, R"({"content":"é"})", "null", expected),
                                      choice(0, "{}", "\"stop\"") + " timings hocket", "data: [DONE]"}));
}

TEST_F(Stream, AnErrorIsAnEventAndNoDoneFollows) {
  Error late(ErrorCode::kInternal, "it broke");
  const RawResponse response = run({delta({{Kind::kContent, "a", 0, "", ""}}), {late, {}}});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(skeleton(response.body),
            (std::vector<std::string>{choice(0, kRole), choice(0, R"({"content":"a"})"), "error null"}));
  const auto events = events_of(response.body);
  const Json error = TestServer::parse(events.back().substr(6))["error"];
  EXPECT_EQ(error["message"], "it broke");
  EXPECT_EQ(error["type"], "server_error");
}

TEST_F(Stream, ErrorsBeforeTheStreamHaveTheirStatus) {
  Error full(ErrorCode::kBusy, "64 requests are waiting");
  full.reason = "queue_full";
  server_.service->refuse = full;
  const RawResponse response = server_.call("POST", "/v1/chat/completions", chat_body("\"stream\":true"));
  EXPECT_EQ(response.status, 429);
  EXPECT_NE(response.header("Retry-After"), "");
  EXPECT_EQ(TestServer::parse(response.body)["error"]["code"], "rate_limit_exceeded");
}

TEST_F(Stream, ProgressWhenAsked) {
  const std::vector<ScriptStep> script{
      {ReplyEvent(ProgressEvent{512, 2048}), {}}, finished(0, FinishReason::kStop), done()};
  EXPECT_EQ(skeleton(run(script).body).size(), 3u);
  const auto events = events_of(run(script, R"("stream":true,"hocket_progress":true)").body);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(dump_json(TestServer::parse(events[0].substr(6))["hocket_progress"]),
            R"({"prompt_tokens_done":512,"prompt_tokens":2048})");
}

TEST_F(Stream, Completions) {
  const RawResponse response =
      server_.call("POST", "/v1/completions", R"({"model":"fake","prompt":"x","stream":true})");
  std::vector<std::string> expected;
  for (const char* word : {"one", " two", " three"})
    expected.push_back(std::string(R"([{"text":")") + word + R"(","index":0,"logprobs":null,"finish_reason":null}])");
  expected.push_back(R"([{"text":"","index":0,"logprobs":null,"finish_reason":"stop"}] timings hocket)");
  expected.push_back("data: [DONE]");
  EXPECT_EQ(skeleton(response.body), expected);
}

TEST(StreamPings, KeepASilentStreamAlive) {
  ServerOptions options;
  options.ping_interval = std::chrono::milliseconds(60);
  TestServer server(options);
  server.service->chat_script = [](const ChatRequest&) {
    ScriptStep late = finished(0, FinishReason::kStop);
    late.after = std::chrono::milliseconds(1500);
    return std::vector<ScriptStep>{late, done()};
  };
  const auto lines = skeleton(server.call("POST", "/v1/chat/completions", chat_body("\"stream\":true")).body);
  ASSERT_GE(lines.size(), 5u);
  EXPECT_EQ(lines[0], ": ping");
  EXPECT_EQ(lines[1], ": ping");
  EXPECT_EQ(lines.back(), "data: [DONE]");
}

TEST(StreamHead, IsSentBeforeTheFirstEvent) {
  TestServer server;
  server.service->step = std::chrono::seconds(60);
  RawClient client(server.port());
  client.send(TestServer::request("POST", "/v1/chat/completions", chat_body("\"stream\":true")));
  EXPECT_TRUE(client.receive_until("\r\n\r\n"));
}

TEST(StreamHttp10, IsNotChunked) {
  TestServer server;
  const std::string body = chat_body("\"stream\":true");
  const RawResponse response = server.raw(
      "POST /v1/chat/completions HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_EQ(response.header("Transfer-Encoding"), "");
  EXPECT_TRUE(response.body.ends_with("data: [DONE]\n\n")) << response.body;
}

}  // namespace
}  // namespace hocket
