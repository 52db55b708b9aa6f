// Sessions over HTTP: list, drop, export, import, fork, clear; and what a reply tells of its session.
#include <future>

#include "http/test_server.h"

namespace hocket {
namespace {

class SessionCalls : public ::testing::Test {
 protected:
  void SetUp() override {
    save("", "a");
    save("alice", "talk/1 of 2");
  }
  void save(const std::string& tenant, const std::string& id, std::size_t n_bytes = 100) {
    SessionState state;
    state.key.tokens = {1, 2, 3};
    state.key.lineage = {3, 3};
    state.memory.resize(n_bytes);
    std::vector<SessionState> states;
    states.push_back(std::move(state));
    std::promise<SaveOutcome> done;
    sessions().save({tenant, id}, std::move(states), [&](const SaveOutcome& outcome) { done.set_value(outcome); });
    ASSERT_EQ(done.get_future().get().stored, SaveOutcome::Stored::kRam);
  }
  SessionStore& sessions() { return server_.service->sessions(); }
  static std::string put(const std::string& path, const std::string& body, const std::string& type) {
    return "PUT " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: " + type +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  static std::string code(const RawResponse& response) {
    const Json error = TestServer::parse(response.body)["error"];
    return error["code"].is_string() ? error["code"].get<std::string>() : "";
  }
  static std::string param(const RawResponse& response) {
    const Json error = TestServer::parse(response.body)["error"];
    return error["param"].is_string() ? error["param"].get<std::string>() : "";
  }
  TestServer server_;
};

TEST_F(SessionCalls, ListsThoseOfATenant) {
  Json list = server_.json("GET", "/v1/sessions");
  EXPECT_EQ(list["object"], "list");
  ASSERT_EQ(list["data"].size(), 1u);
  EXPECT_EQ(list["data"][0]["id"], "a");
  EXPECT_EQ(list["data"][0]["tokens"], 3);
  EXPECT_EQ(list["data"][0]["stored"], "ram");
  EXPECT_EQ(list["data"][0]["usable"], true);
  list = server_.json("GET", "/v1/sessions?user=alice");
  ASSERT_EQ(list["data"].size(), 1u);
  EXPECT_EQ(list["data"][0]["id"], "talk/1 of 2");
  EXPECT_EQ(server_.json("GET", "/v1/sessions?user=bob")["data"].size(), 0u);
  EXPECT_EQ(param(server_.call("GET", "/v1/sessions?users=bob")), "users");
  EXPECT_EQ(param(server_.call("GET", "/v1/sessions?user=" + std::string(257, 'u'))), "user");
}

TEST_F(SessionCalls, DropsOne) {
  EXPECT_EQ(code(server_.call("DELETE", "/v1/sessions/talk%2F1%20of%202")), "session_not_found");
  EXPECT_EQ(server_.json("DELETE", "/v1/sessions/talk%2F1%20of%202?user=alice")["deleted"], true);
  EXPECT_TRUE(sessions().list("alice").empty());
  EXPECT_EQ(server_.call("DELETE", "/v1/sessions/talk%2F1%20of%202?user=alice").status, 404);
  EXPECT_EQ(server_.call("DELETE", "/v1/sessions/").status, 404);
  EXPECT_EQ(param(server_.call("DELETE", "/v1/sessions/" + std::string(257, 'x'))), "session_id");
  EXPECT_EQ(server_.call("POST", "/v1/sessions/a", "{}").status, 405);
}

TEST_F(SessionCalls, ExportsAndImports) {
  const RawResponse state = server_.call("GET", "/v1/sessions/a/state");
  EXPECT_EQ(state.status, 200);
  EXPECT_EQ(state.header("Content-Type"), "application/octet-stream");
  EXPECT_GT(state.body.size(), 100u);
  const auto imported =
      server_.raw(put("/v1/sessions/b%2Fstate/state?user=bob", state.body, "application/octet-stream"));
  EXPECT_EQ(imported.status, 200) << imported.body;
  ASSERT_EQ(sessions().list("bob").size(), 1u);
  EXPECT_EQ(sessions().list("bob")[0].id, "b/state");
  EXPECT_EQ(server_.call("GET", "/v1/sessions/b%2Fstate/state?user=bob").body, state.body);

  EXPECT_EQ(server_.call("GET", "/v1/sessions/nobody/state").status, 404);
  EXPECT_EQ(server_.call("GET", "/v1/sessions/a").status, 404);
  std::string damaged = state.body;
  damaged[damaged.size() / 2] ^= 1;
  const auto refused = server_.raw(put("/v1/sessions/c/state", damaged, "application/octet-stream"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(code(refused), "session_damaged");
  EXPECT_EQ(server_.raw(put("/v1/sessions/c/state", state.body, "application/json")).status, 415);
  EXPECT_EQ(server_.raw(put("/v1/sessions/c/state", "", "application/octet-stream")).status, 400);
}

TEST_F(SessionCalls, AStateOfAnotherModelIsAConflict) {
  SessionStoreOptions options;
  options.identity = {"another", ""};
  auto other = SessionStore::open(options);
  ASSERT_TRUE(other.ok());
  SessionState state;
  state.key.tokens = {1, 2, 3};
  state.key.identity = options.identity;
  std::vector<SessionState> states;
  states.push_back(std::move(state));
  (*other)->save({"", "x"}, std::move(states), [](const SaveOutcome&) {});
  const auto bytes = (*other)->export_session({"", "x"});
  ASSERT_TRUE(bytes.ok());
  const std::string body(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  const auto refused = server_.raw(put("/v1/sessions/c/state", body, "application/octet-stream"));
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(code(refused), "session_model");
}

TEST_F(SessionCalls, BodiesHaveTheirOwnLimits) {
  ServerOptions options;
  options.limits.max_body_bytes = 1000;
  options.limits.max_state_bytes = 5000;
  TestServer server(options);
  const std::string large(3000, 'x'), larger(6000, 'x');
  EXPECT_EQ(server.raw(put("/v1/sessions/a/state", large, "application/octet-stream")).status, 400);
  EXPECT_EQ(server.raw(put("/v1/sessions/a/state", larger, "application/octet-stream")).status, 413);
  EXPECT_EQ(server.call("POST", "/v1/cache/clear", large).status, 413);
  const std::string chunked =
      "POST /v1/cache/clear HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: "
      "chunked\r\n\r\nbb8\r\n" +
      large + "\r\n0\r\n\r\n";
  EXPECT_EQ(server.raw(chunked).status, 413);
}

TEST_F(SessionCalls, Forks) {
  const auto fork = [&](const std::string& body) { return server_.call("POST", "/v1/cache/fork", body); };
  EXPECT_EQ(fork(R"({"source_session_id":"a","target_session_id":"b"})").status, 200);
  EXPECT_EQ(sessions().list("").size(), 2u);
  EXPECT_EQ(fork(R"({"user":"alice","source_session_id":"talk/1 of 2","target_session_id":"b"})").status, 200);
  EXPECT_EQ(sessions().list("alice").size(), 2u);
  const auto missing = fork(R"({"user":"alice","source_session_id":"a","target_session_id":"c"})");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(code(missing), "session_not_found");
  EXPECT_EQ(param(fork(R"({"source_session_id":"a"})")), "target_session_id");
  EXPECT_EQ(param(fork(R"({"source_session_id":"","target_session_id":"c"})")), "source_session_id");
  EXPECT_EQ(param(fork(R"({"source_session_id":"a","target_session_id":"a"})")), "target_session_id");
  EXPECT_EQ(param(fork(R"({"source_session_id":"a","target_session_id":"c","deep":1})")), "deep");
  EXPECT_EQ(fork(R"({"source_session_id":"a","target_session_id":")" + std::string(257, 'x') + "\"}").status, 400);
}

TEST_F(SessionCalls, ClearsOneOrAll) {
  const auto clear = [&](const std::string& body) { return server_.call("POST", "/v1/cache/clear", body); };
  EXPECT_EQ(param(clear(R"({"user":"alice"})")), "session_id");
  EXPECT_EQ(clear(R"({"user":"alice","session_id":"a"})").status, 404);
  EXPECT_EQ(clear(R"({"user":"alice","session_id":"talk/1 of 2"})").status, 200);
  EXPECT_EQ(sessions().stats().n_sessions, 1u);
  EXPECT_EQ(clear("{}").body, R"({"cleared":true,"sessions":1})");
  EXPECT_EQ(sessions().stats().n_sessions, 0u);
}

TEST_F(SessionCalls, StatusAndMetricsCount) {
  ASSERT_TRUE(sessions().fork("", "a", "b").ok());
  const Json status = server_.json("GET", "/v1/cache/status")["sessions"];
  EXPECT_EQ(status["sessions"], 3);
  EXPECT_EQ(status["users"], 2);
  EXPECT_EQ(status["snapshots"], 2);
  EXPECT_EQ(status["forks"], 1);
  EXPECT_GT(status["ram_bytes"], 200);
  const std::string metrics = server_.call("GET", "/metrics").body;
  EXPECT_NE(metrics.find("hocket_sessions{model=\"org/fake:1b\"} 3\n"), std::string::npos);
  EXPECT_NE(metrics.find("hocket_session_saves_total{model=\"org/fake:1b\",result=\"stored\"} 2\n"), std::string::npos);
  EXPECT_EQ(metrics.find("alice"), std::string::npos);
}

TEST_F(SessionCalls, AReplyTellsOfItsSession) {
  server_.service->chat_script = [](const ChatRequest& request) {
    EXPECT_EQ(request.serving.session_id, "mine");
    ReplyDone done = FakeChatService::done();
    auto details = std::make_shared<ReplyDetails>(*done.details);
    details->cache_status_reason = "session_damaged";
    details->session = SessionReport{"mine", "skipped", "over_budget", 123, 4.5};
    done.details = details;
    return std::vector<ScriptStep>{{ReplyEvent(FakeChatService::content("hm")), {}},
                                   {ReplyEvent(ChoiceFinished{0, FinishReason::kStop, ""}), {}},
                                   {ReplyEvent(done), {}}};
  };
  const Json hocket = server_.json("POST", "/v1/chat/completions", chat_body(R"("session_id":"mine")"))["hocket"];
  EXPECT_EQ(hocket["session"]["id"], "mine");
  EXPECT_EQ(hocket["session"]["stored"], "skipped");
  EXPECT_EQ(hocket["session"]["reason"], "over_budget");
  EXPECT_EQ(hocket["session"]["bytes"], 123);
  EXPECT_EQ(hocket["session"]["save_ms"], 4.5);
  EXPECT_EQ(hocket["session"]["restored"], false);
  EXPECT_EQ(hocket["cache_status_reason"], "session_damaged");
  EXPECT_EQ(param(server_.call("POST", "/v1/chat/completions", chat_body(R"("session_id":"")"))), "session_id");
}

}  // namespace
}  // namespace hocket
