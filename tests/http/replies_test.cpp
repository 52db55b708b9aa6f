// Bodies of successful answers, and what reaches the service.
#include "http/test_server.h"

namespace hocket {
namespace {

TEST(ChatReply, HasTheWholeShape) {
  TestServer server;
  Json reply = server.json("POST", "/v1/chat/completions", chat_body());
  EXPECT_TRUE(reply["id"].get<std::string>().starts_with("chatcmpl-"));
  for (const char* name : {"timings", "hocket", "id"}) reply.erase(name);
  EXPECT_EQ(
      dump_json(reply),
      R"({"object":"chat.completion","created":1700000000,"model":"org/fake:1b","system_fingerprint":"fp_fake",)"
      R"("choices":[{"index":0,"message":{"role":"assistant","content":"one two three","refusal":null},"logprobs":null,"finish_reason":"stop"}],)"
      R"("usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":0}}})");
}

TEST(ChatReply, NumbersHaveLlamaServersNames) {
  TestServer server;
  const Json reply = server.json("POST", "/v1/chat/completions", chat_body("\"max_tokens\":9"));
  EXPECT_EQ(reply["timings"]["prompt_per_second"], 300.0);
  EXPECT_EQ(reply["timings"]["predicted_per_second"], 100.0);
  EXPECT_EQ(reply["timings"]["cache_n"], 2);
  EXPECT_EQ(reply["hocket"]["requested_max_tokens"], 9);
  EXPECT_EQ(reply["hocket"]["finish_reason"], "stop");
  EXPECT_EQ(reply["hocket"]["draft_n"], 0);
  EXPECT_FALSE(reply["timings"].contains("draft_n"));
}

TEST(ChatReply, DraftsAreCounted) {
  TestServer server;
  server.service->chat_script = [](const ChatRequest&) {
    ReplyDone done = FakeChatService::done();
    done.timings.drafted_tokens = 7;
    done.timings.accepted_tokens = 5;
    return std::vector<ScriptStep>{{ReplyEvent(ChoiceFinished{}), {}}, {ReplyEvent(done), {}}};
  };
  const Json reply = server.json("POST", "/v1/chat/completions", chat_body());
  for (const char* where : {"timings", "hocket"}) {
    EXPECT_EQ(reply[where]["draft_n"], 7);
    EXPECT_EQ(reply[where]["draft_n_accepted"], 5);
  }
}

TEST(ChatReply, TheHocketObjectIsComplete) {
  TestServer server;
  server.service->chat_script = [](const ChatRequest&) {
    ReplyDone done = FakeChatService::done();
    done.timings.decode_compute_ms = 20;
    done.timings.drafted_tokens = 4;
    done.timings.accepted_tokens = 1;
    ReplyDetails details;
    details.max_tokens = 3;
    details.exact = true;
    details.cache_status = CacheStatus::kPrefix;
    details.generated_cached_tokens = 1;
    details.strict = false;
    details.continuation_tokens = 9;
    details.n_flow_waits = 2;
    details.flow_wait_ms = 12;
    details.context_full = true;
    details.sampling.seed = 77;
    details.sampling.temperature = 0.7f;
    details.rss_bytes = 1000;
    details.peak_rss_bytes = 2000;
    details.minor_faults = 5;
    details.major_faults = 1;
    done.details = std::make_shared<ReplyDetails>(details);
    return std::vector<ScriptStep>{{ReplyEvent(ChoiceFinished{0, FinishReason::kLength, ""}), {}},
                                   {ReplyEvent(done), {}}};
  };
  const RawResponse response = server.call("POST", "/v1/chat/completions", chat_body(), "X-Request-Id: numbers-1\r\n");
  Json own = TestServer::parse(response.body)["hocket"];
  const Json sampling = own["sampling"];
  own.erase("sampling");
  EXPECT_EQ(
      dump_json(own),
      R"({"id":"numbers-1","model":"org/fake:1b","finish_reason":"length","prompt_tokens":5,)"
      R"("completion_tokens":3,"requested_max_tokens":null,"effective_max_tokens":3,)"
      R"("context_capacity_reached":true,"queue_ms":0.0,"ttft_ms":0.0,"prefill_ms":10.0,)"
      R"("prompt_evaluated_tokens":3,"prefill_tokens_per_second":300.0,"decode_ms":30.0,)"
      R"("decode_tokens_per_second":100.0,"decode_compute_ms":20.0,"decode_compute_tokens_per_second":150.0,)"
      R"("draft_n":4,"draft_n_accepted":1,"total_ms":40.0,"cached_tokens":2,"cache_status":"prefix_hit",)"
      R"("generated_cached_tokens":1,"state_lineage":"incremental","continuation_tokens":9,"flow_waits":2,)"
      R"("flow_wait_ms":12.0,"determinism":"exact","rss_bytes":1000,"peak_rss_bytes":2000,"minor_page_faults":5,"major_page_faults":1})");
  EXPECT_EQ(sampling["seed"], 77);
  EXPECT_EQ(sampling["temperature"], 0.7);
  // The same names as in /props.
  const Json defaults = server.json("GET", "/props")["default_generation_settings"]["params"];
  EXPECT_EQ(sampling.size(), defaults.size());
  for (const auto& [name, value] : sampling.items()) EXPECT_TRUE(defaults.contains(name)) << name;
}

TEST(ChatReply, ToolCallsReasoningAndLogprobs) {
  TestServer server;
  server.service->chat_script = [](const ChatRequest&) {
    using Kind = ReplyDelta::Kind;
    DeltaEvent event;
    event.deltas = {{Kind::kReasoning, "hm", 0, "", ""},
                    {Kind::kToolCallStart, "", 0, "call_a", "get"},
                    {Kind::kToolCallArguments, "{}", 0, "", ""}};
    event.logprobs = {{{65, "A", -1.0}, {}}};
    return std::vector<ScriptStep>{{ReplyEvent(event), {}},
                                   {ReplyEvent(ChoiceFinished{0, FinishReason::kToolCalls, ""}), {}},
                                   {ReplyEvent(FakeChatService::done()), {}}};
  };
  const Json choice = server.json("POST", "/v1/chat/completions", chat_body("\"logprobs\":true"))["choices"][0];
  EXPECT_EQ(
      dump_json(choice),
      R"({"index":0,"message":{"role":"assistant","content":null,"refusal":null,"reasoning_content":"hm",)"
      R"("tool_calls":[{"id":"call_a","type":"function","function":{"name":"get","arguments":"{}"}}]},)"
      R"("logprobs":{"content":[{"token":"A","logprob":-1.0,"bytes":[65],"top_logprobs":[]}],"refusal":null},"finish_reason":"tool_calls"})");
}

TEST(ChatReply, EngineErrorsKeepTheirStatusParamAndNumbers) {
  TestServer server;
  Error error(ErrorCode::kInvalid, "the prompt has 5000 tokens", "messages");
  error.reason = "context_length_exceeded";
  error.numbers = {{"n_prompt_tokens", 5000}, {"n_ctx", 2048}};
  server.service->refuse = error;
  const RawResponse response = server.call("POST", "/v1/chat/completions", chat_body());
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.body,
            R"({"error":{"message":"the prompt has 5000 tokens","type":"invalid_request_error","param":"messages",)"
            R"("code":"context_length_exceeded","n_prompt_tokens":5000,"n_ctx":2048}})");
}

TEST(ChatRequestFields, SeveralCallsByDefaultOnlyUnderAuto) {
  TestServer server;
  const auto parallel = [&](const std::string& more) {
    const std::string body = R"({"model":"fake","messages":[{"role":"user","content":"x"}],)"
                             R"("tools":[{"type":"function","function":{"name":"f"}}])" +
                             more + "}";
    EXPECT_EQ(server.call("POST", "/v1/chat/completions", body).status, 200) << body;
    return server.service->chats().back().parallel_tool_calls;
  };
  EXPECT_TRUE(parallel(""));
  EXPECT_TRUE(parallel(R"(,"tool_choice":"auto")"));
  EXPECT_FALSE(parallel(R"(,"tool_choice":"required")"));
  EXPECT_TRUE(parallel(R"(,"tool_choice":"required","parallel_tool_calls":true)"));
  EXPECT_FALSE(parallel(R"(,"parallel_tool_calls":false)"));
}

TEST(ChatRequestFields, ReachTheService) {
  TestServer server;
  const std::string body = R"({"model":"fake","messages":[
      {"role":"system","content":"s"},
      {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"name":"ann"},
      {"role":"assistant","reasoning_content":"r","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},
      {"role":"tool","tool_call_id":"c1","content":"4"}],
    "tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}}],
    "tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":false,
    "response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}},
    "max_completion_tokens":7,"max_tokens":9,"temperature":0.5,"top_p":0.25,"top_k":-1,"repetition_penalty":1.5,"n":2,
    "stop":["","END"],"seed":-5,"logprobs":true,"top_logprobs":2,"logit_bias":{"7":-100},"prompt_cache_key":"tenant",
    "reasoning_effort":"none","chat_template_kwargs":{"lang":"en"}})";
  EXPECT_EQ(server.call("POST", "/v1/chat/completions", body, "X-Request-Id: mine\r\n").status, 200);
  const ChatRequest r = server.service->chats().at(0);
  EXPECT_EQ(r.request_id, "mine");
  EXPECT_EQ(r.user, "tenant");
  ASSERT_EQ(r.messages.size(), 4u);
  EXPECT_EQ(r.messages[1].content, "a\nb");
  EXPECT_EQ(r.messages[1].name, "ann");
  EXPECT_EQ(r.messages[2].content, std::nullopt);
  EXPECT_EQ(r.messages[2].reasoning, "r");
  EXPECT_EQ(r.messages[2].tool_calls.at(0).arguments, R"({"x":1})");
  EXPECT_EQ(r.messages[3].tool_call_id, "c1");
  EXPECT_EQ(r.tools.at(0).parameters_json, R"({"type":"object"})");
  EXPECT_TRUE(r.tools[0].strict);
  EXPECT_EQ(r.tool_choice.kind, ToolChoiceKind::kFunction);
  EXPECT_EQ(r.tool_choice.function, "f");
  EXPECT_FALSE(r.parallel_tool_calls);
  EXPECT_EQ(r.response_format.kind, ResponseFormat::Kind::kJsonSchema);
  EXPECT_EQ(r.response_format.schema_json, R"({"type":"object"})");
  EXPECT_EQ(r.params.max_tokens, 7);
  EXPECT_EQ(r.params.temperature, 0.5f);
  EXPECT_EQ(r.params.top_p, 0.25f);
  EXPECT_EQ(r.params.top_k, 0);
  EXPECT_EQ(r.params.repeat_penalty, 1.5f);
  EXPECT_EQ(r.params.min_p, std::nullopt);
  EXPECT_EQ(r.params.n, 2);
  EXPECT_EQ(r.params.stop, std::vector<std::string>{"END"});
  EXPECT_EQ(r.params.seed, -5);
  EXPECT_EQ(r.params.top_logprobs, 2);
  EXPECT_EQ(r.params.logit_bias.at(0).id, 7);
  EXPECT_FALSE(r.enable_thinking);
  EXPECT_EQ(r.template_kwargs_json, R"({"reasoning_effort":"none","lang":"en"})");
  EXPECT_FALSE(r.continue_final_message);
}

TEST(ChatRequestFields, SchemasAtTheThreePlaces) {
  TestServer server;
  for (const char* format :
       {R"({"type":"json_schema","json_schema":{"schema":{"a":1}}})", R"({"type":"json_schema","schema":{"a":1}})",
        R"({"type":"json_object","schema":{"a":1}})"})
    server.call("POST", "/v1/chat/completions", chat_body(std::string("\"response_format\":") + format));
  ASSERT_EQ(server.service->chats().size(), 3u);
  for (const ChatRequest& r : server.service->chats()) {
    EXPECT_EQ(r.response_format.kind, ResponseFormat::Kind::kJsonSchema);
    EXPECT_EQ(r.response_format.schema_json, R"({"a":1})");
  }
}

TEST(ChatRequestFields, LegacyFunctionsAndAssistantPrefill) {
  TestServer server;
  server.call("POST", "/v1/chat/completions", chat_body(R"("functions":[{"name":"f"}],"function_call":{"name":"f"})"));
  EXPECT_EQ(server.service->chats().at(0).tool_choice.function, "f");
  const std::string prefill =
      R"({"model":"fake","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"Sure"}])";
  server.call("POST", "/v1/chat/completions", prefill + "}");
  EXPECT_TRUE(server.service->chats().at(1).continue_final_message);
  server.call("POST", "/v1/chat/completions", prefill + R"(,"continue_final_message":false})");
  EXPECT_FALSE(server.service->chats().at(2).continue_final_message);
}

TEST(CompletionReply, PromptsLogprobsAndOffsets) {
  TestServer server;
  server.service->completion_script = [](const CompletionRequest&) {
    DeltaEvent event = FakeChatService::content("é!");
    event.logprobs = {{{1, "\xc3", -0.5}, {{2, "x", -2.0}}}, {{3, "\xa9", -0.25}, {}}, {{4, "!", -1.0}, {}}};
    return std::vector<ScriptStep>{
        {ReplyEvent(event), {}}, {ReplyEvent(ChoiceFinished{}), {}}, {ReplyEvent(FakeChatService::done()), {}}};
  };
  const Json reply = server.json("POST", "/v1/completions", R"({"model":"fake","prompt":[[1,2],[3]],"logprobs":1})");
  EXPECT_EQ(reply["object"], "text_completion");
  EXPECT_EQ(
      dump_json(reply["choices"][0]),
      R"({"text":"é!","index":0,"logprobs":{"tokens":["bytes:\\xc3","bytes:\\xa9","!"],"token_logprobs":[-0.5,-0.25,-1.0],)"
      R"("top_logprobs":[{"x":-2.0},{},{}],"text_offset":[0,1,1]},"finish_reason":"stop"})");
  EXPECT_EQ(server.service->completions().at(0).prompts.size(), 2u);
  EXPECT_EQ(std::get<std::vector<TokenId>>(server.service->completions()[0].prompts[0]), (std::vector<TokenId>{1, 2}));
}

TEST(Embeddings, FloatAndBase64) {
  TestServer server;
  const Json floats = server.json("POST", "/v1/embeddings", R"({"model":"fake","input":["a","b"]})");
  EXPECT_EQ(
      dump_json(floats),
      R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-0.25,0.0]},)"
      R"({"object":"embedding","index":1,"embedding":[0.5,-0.25,1.0]}],"model":"org/fake:1b","usage":{"prompt_tokens":7,"total_tokens":7}})");
  const Json packed =
      server.json("POST", "/v1/embeddings", R"({"model":"fake","input":[5,6],"encoding_format":"base64"})");
  EXPECT_EQ(packed["data"][0]["embedding"], "AAAAPwAAgL4AAAAA");
}

TEST(Models, IdsMayHaveSlashesAndColons) {
  TestServer server;
  const Json list = server.json("GET", "/v1/models");
  EXPECT_EQ(list["object"], "list");
  EXPECT_EQ(list["data"][0]["id"], "org/fake:1b");
  EXPECT_EQ(list["data"][0]["meta"]["n_ctx_train"], 4096);
  for (const char* path : {"/v1/models/org/fake:1b", "/v1/models/org%2Ffake%3A1b", "/v1/models/fake"})
    EXPECT_EQ(server.call("GET", path).status, 200) << path;
  const RawResponse missing = server.call("GET", "/v1/models/other");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(TestServer::parse(missing.body)["error"]["code"], "model_not_found");
}

TEST(Tools, TokenizeDetokenizeTemplate) {
  TestServer server;
  EXPECT_EQ(server.call("POST", "/tokenize", R"({"content":"hi"})").body, R"({"tokens":[104,105]})");
  EXPECT_EQ(server.call("POST", "/tokenize", R"({"content":["h",500,"i"],"add_special":true})").body,
            R"({"tokens":[999,104,500,105]})");
  EXPECT_EQ(server.call("POST", "/tokenize", R"({"content":"é","with_pieces":true})").body,
            R"({"tokens":[{"id":195,"piece":[195]},{"id":169,"piece":[169]}]})");
  EXPECT_EQ(server.call("POST", "/detokenize", R"({"tokens":[104,105]})").body, R"({"content":"hi"})");
  EXPECT_EQ(server.call("POST", "/apply-template", R"({"messages":[{"role":"user","content":"x"}]})").body,
            R"({"prompt":"user:x;"})");
}

TEST(Health, FollowsTheHost) {
  TestServer server;
  for (const char* path : {"/health", "/livez", "/readyz"})
    EXPECT_EQ(server.call("GET", path).body, R"({"status":"ok"})");
  server.host.set_state(ModelHost::State::kLoading);
  EXPECT_EQ(server.call("GET", "/livez").status, 200);
  for (const char* path : {"/health", "/readyz"}) {
    const RawResponse response = server.call("GET", path);
    EXPECT_EQ(response.status, 503);
    EXPECT_NE(response.header("Retry-After"), "");
    EXPECT_EQ(TestServer::parse(response.body)["error"]["code"], "loading");
  }
  EXPECT_EQ(server.call("POST", "/v1/chat/completions", chat_body()).status, 503);
  const Json loading = server.json("GET", "/v1/models")["data"][0]["status"];
  EXPECT_EQ(loading["value"], "loading");
  EXPECT_EQ(loading["progress"], 0.25);
  server.host.set_state(ModelHost::State::kFailed);
  EXPECT_EQ(TestServer::parse(server.call("GET", "/health").body)["error"]["code"], "load_failed");
  EXPECT_EQ(server.json("GET", "/v1/models")["data"][0]["status"]["error"], "the file is damaged");
  server.host.set_state(ModelHost::State::kReady);
}

TEST(Props, ShowConfiguration) {
  TestServer server;
  const Json props = server.json("GET", "/props");
  EXPECT_EQ(props["default_generation_settings"]["n_ctx"], 2048);
  EXPECT_EQ(props["model_meta"], server.json("GET", "/v1/models/fake")["meta"]);
  EXPECT_EQ(props["model_path"], "fake.gguf");
  EXPECT_EQ(props["limits"]["max_n"], 8);
  EXPECT_TRUE(props["drafts"].is_null());
}

}  // namespace
}  // namespace hocket
