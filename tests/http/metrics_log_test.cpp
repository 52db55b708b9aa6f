// One line a reply in the metrics log, however the reply ends.
#include <fstream>

#include "http/test_server.h"
#include "support/temp_folder.h"

namespace hocket {
namespace {

class MetricsLogTest : public ::testing::Test {
 protected:
  MetricsLogTest() {
    path_ = folder_.file("metrics.jsonl");
    options_.metrics_log = path_;
  }

  static std::vector<Json> lines(const std::string& path) {
    std::vector<Json> out;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) out.push_back(TestServer::parse(line));
    return out;
  }

  TempFolder folder_;
  std::string path_;
  ServerOptions options_;
};

TEST_F(MetricsLogTest, HoldsTheHocketObjectOfEveryReply) {
  TestServer server(options_);
  Json body = server.json("POST", "/v1/chat/completions", chat_body());
  const RawResponse stream = server.call("POST", "/v1/chat/completions", chat_body("\"stream\":true"));
  EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n"));
  server.call("POST", "/v1/chat/completions", chat_body("\"n\":0"));  // refused: no reply
  const std::vector<Json> got = lines(path_);
  ASSERT_EQ(got.size(), 2u);
  Json first = got[0];
  EXPECT_GT(first["time"].get<double>(), 1.6e9);
  first.erase("time");
  EXPECT_EQ(first, body["hocket"]);
  EXPECT_EQ(got[1]["finish_reason"], "stop");
  EXPECT_EQ(std::filesystem::status(path_).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(MetricsLogTest, TellsErrorsAndClientsThatLeft) {
  TestServer server(options_);
  server.service->chat_script = [](const ChatRequest&) {
    Error late(ErrorCode::kTimeout, "too late");
    late.reason = "request_timeout";
    return std::vector<ScriptStep>{{ReplyEvent(FakeChatService::content("a")), {}}, {late, {}}};
  };
  server.call("POST", "/v1/chat/completions", chat_body());
  server.call("POST", "/v1/chat/completions", chat_body("\"stream\":true"));
  server.service->chat_script = nullptr;
  server.service->step = std::chrono::seconds(60);
  {
    RawClient leaver(server.port());
    leaver.send(TestServer::request("POST", "/v1/chat/completions", chat_body("\"stream\":true")));
    ASSERT_TRUE(leaver.receive_until("\r\n\r\n"));
  }
  ASSERT_TRUE(TestServer::eventually([&] { return lines(path_).size() == 3; }));
  const std::vector<Json> got = lines(path_);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(got[i]["error"], "timeout");
    EXPECT_EQ(got[i]["error_reason"], "request_timeout");
    EXPECT_TRUE(got[i]["finish_reason"].is_null());
  }
  EXPECT_EQ(got[2]["error"], "cancelled");
}

TEST_F(MetricsLogTest, GoesOnInANewFileAfterARotation) {
  TestServer server(options_);
  server.call("POST", "/v1/chat/completions", chat_body());
  std::filesystem::rename(path_, path_ + ".1");
  server.call("POST", "/v1/chat/completions", chat_body());
  ASSERT_TRUE(server.server->reload().ok());
  server.call("POST", "/v1/chat/completions", chat_body());
  EXPECT_EQ(lines(path_ + ".1").size(), 2u);
  EXPECT_EQ(lines(path_).size(), 1u);
}

TEST_F(MetricsLogTest, AFileThatCannotBeWrittenIsNamed) {
  FakeHost host(std::make_shared<FakeChatService>());
  options_.port = 0;
  options_.metrics_log = folder_.file("no/such/file");
  const auto server = Server::start(options_, host);
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.error().code, ErrorCode::kIo);
  EXPECT_EQ(server.error().param, "metrics-log");
}

}  // namespace
}  // namespace hocket
