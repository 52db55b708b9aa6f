// Bodies that no honest client sends, each with the status and `param` of its answer; and odd ones that are fine.
#include "http/test_server.h"

namespace hocket {
namespace {

struct Case {
  std::string body;
  int status;
  std::string param;  // "-": null
};

class HostileBody : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new TestServer(); }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }
  static void check(const std::string& path, const std::vector<Case>& cases) {
    for (const Case& c : cases) {
      const RawResponse response = server_->call("POST", path, c.body);
      SCOPED_TRACE(path + " " + c.body.substr(0, 300));
      EXPECT_EQ(response.status, c.status) << response.body;
      if (c.status < 400) continue;
      const Json body = TestServer::parse(response.body);
      ASSERT_TRUE(body.contains("error")) << response.body;
      const Json& error = body["error"];
      EXPECT_FALSE(error["message"].get<std::string>().empty());
      EXPECT_TRUE(error["type"].is_string());
      EXPECT_TRUE(error["code"].is_string() || error["code"].is_null());
      if (c.param == "-")
        EXPECT_TRUE(error["param"].is_null()) << response.body;
      else
        EXPECT_EQ(error["param"], c.param) << response.body;
    }
  }
  static TestServer* server_;
};
TestServer* HostileBody::server_ = nullptr;

Case with(const std::string& extra, int status, const std::string& param) {
  return {chat_body(extra), status, param};
}
Case field(const std::string& name, const std::string& value, const std::string& param = "") {
  return with("\"" + name + "\":" + value, 400, param.empty() ? name : param);
}
std::string messages(const std::string& list) {
  return R"({"model":"fake","messages":)" + list + "}";
}
std::string repeat(const std::string& s, std::size_t n) {
  std::string all;
  for (std::size_t i = 0; i < n; ++i) all += s;
  return all;
}

TEST_F(HostileBody, Syntax) {
  check("/v1/chat/completions", {{"", 400, "-"},
                                 {"{", 400, "-"},
                                 {"[]", 400, "-"},
                                 {"\"text\"", 400, "-"},
                                 {"null", 400, "-"},
                                 {"{} {}", 400, "-"},
                                 {"// comment\n{}", 400, "-"},
                                 {R"({"model":"fake","model":"fake"})", 400, "-"},
                                 {R"({"messages":[{"role":"user","role":"user"}]})", 400, "-"},
                                 {"{\"model\":\"\xff\"}", 400, "-"},
                                 {"{\"model\":\"\xc3\"}", 400, "-"},
                                 {"{\"model\":\"\xed\xa0\x80\"}", 400, "-"},
                                 {R"({"model":"\ud800"})", 400, "-"},
                                 {std::string("{\"model\":\"a\0b\"}", 15), 400, "-"},
                                 {chat_body("\"temperature\":NaN"), 400, "-"},
                                 {chat_body("\"temperature\":1e999"), 400, "-"},
                                 {chat_body("\"temperature\":-Infinity"), 400, "-"},
                                 {repeat("[", 100000), 400, "-"},
                                 {chat_body("\"metadata\":" + repeat("[", 70) + repeat("]", 70)), 400, "-"},
                                 {chat_body("\"metadata\":[" + repeat("0,", 100001) + "0]"), 400, "-"}});
}

TEST_F(HostileBody, WrongTypesOfEveryField) {
  std::vector<Case> cases;
  for (const char* name :
       {"temperature", "top_p", "presence_penalty", "frequency_penalty", "min_p", "repeat_penalty",
        "repetition_penalty", "typical_p", "top_n_sigma", "xtc_probability", "xtc_threshold", "dynatemp_range",
        "dynatemp_exponent", "mirostat_tau", "mirostat_eta", "dry_multiplier", "dry_base"})
    for (const char* value : {"\"1\"", "[]", "{}", "true", "1e300", "-1e300"}) cases.push_back(field(name, value));
  for (const char* name : {"max_tokens", "max_completion_tokens", "n", "seed", "top_k", "top_logprobs", "repeat_last_n",
                           "mirostat", "min_keep", "dry_allowed_length", "dry_penalty_last_n"})
    for (const char* value : {"\"1\"", "[]", "{}", "true", "1.5", "-1e30"}) cases.push_back(field(name, value));
  for (const char* name :
       {"stream", "logprobs", "parallel_tool_calls", "ignore_eos", "enable_thinking", "cache_prompt",
        "reuse_generated_state", "continue_final_message", "add_generation_prompt", "hocket_progress"})
    for (const char* value : {"\"true\"", "1", "[]", "{}"}) cases.push_back(field(name, value));
  for (const char* name :
       {"user", "safety_identifier", "prompt_cache_key", "session_id", "flow_control", "grammar", "reasoning_effort"})
    for (const char* value : {"1", "true", "[]", "{}"}) cases.push_back(field(name, value));
  for (const char* name : {"stream_options", "response_format", "logit_bias", "chat_template_kwargs"})
    for (const char* value : {"1", "true", "\"x\"", "[]"}) cases.push_back(field(name, value));
  for (const char* name : {"tools", "functions", "samplers", "dry_sequence_breakers", "modalities"})
    for (const char* value : {"1", "true", "\"x\"", "{}"}) cases.push_back(field(name, value));
  for (const char* value : {"1", "true", "[]"}) cases.push_back(field("tool_choice", value));
  for (const char* value : {"1", "true", "{}"}) cases.push_back(field("stop", value));
  for (const char* value : {"1", "true", "[]", "{}"})
    cases.push_back(
        {std::string(R"({"messages":[{"role":"user","content":"hi"}],"model":)") + value + "}", 400, "model"});
  for (const char* value : {"1", "true", "\"hi\"", "{}", "[]", "null"})
    cases.push_back({messages(value), 400, "messages"});
  check("/v1/chat/completions", cases);
}

TEST_F(HostileBody, Ranges) {
  check("/v1/chat/completions",
        {field("temperature", "-0.1"),
         field("temperature", "2.1"),
         field("top_p", "1.01"),
         field("presence_penalty", "2.5"),
         field("frequency_penalty", "-2.5"),
         field("n", "0"),
         field("n", "9"),
         field("n", "-1"),
         field("max_tokens", "0"),
         field("max_tokens", "-1"),
         field("max_completion_tokens", "0"),
         field("top_k", "-2"),
         field("repeat_penalty", "0"),
         field("top_logprobs", "21"),
         field("top_logprobs", "3"),
         field("seed", "1e30"),
         field("user", "\"" + repeat("u", 257) + "\""),
         field("stop", "[" + repeat("\"a\",", 16) + "\"a\"]"),
         field("stop", "\"" + repeat("s", 257) + "\""),
         field("stop", "[1]", "stop[0]"),
         field("stop", R"(["ok",null])", "stop[1]"),
         field("logit_bias", R"({"x":1})"),
         field("logit_bias", R"({"1000":1})"),
         field("logit_bias", R"({"-1":1})"),
         field("logit_bias", R"({"5":101})", "logit_bias.5"),
         field("logit_bias", R"({"5":"1"})", "logit_bias.5"),
         field("modalities", R"(["text","audio"])"),
         field("audio", "{}"),
         field("flow_control", "\"ack\""),
         field("flow_control", "\"sometimes\""),
         field("flow_window", "0"),
         field("flow_window", "4"),
         field("flow_window", "\"4\""),
         field("reasoning_effort", "\"enormous\""),
         field("chat_template_kwargs", R"({"enable_thinking":"yes"})", "chat_template_kwargs.enable_thinking"),
         field("stream_options", R"({"include_usage":1})", "stream_options.include_usage"),
         field("add_generation_prompt", "false"),
         field("continue_final_message", "true")});
  check("/v1/chat/completions",
        {field("dry_multiplier", "-0.5"), field("dry_base", "0.99"), field("dry_allowed_length", "0"),
         field("dry_allowed_length", "-1"), field("dry_penalty_last_n", "-2"),
         field("dry_sequence_breakers", "[" + repeat("\"a\",", 64) + "\"a\"]"),
         field("dry_sequence_breakers", R"(["\n",""])", "dry_sequence_breakers[1]"),
         field("dry_sequence_breakers", "[\"" + repeat("b", 41) + "\"]", "dry_sequence_breakers[0]"),
         field("dry_sequence_breakers", "[5]", "dry_sequence_breakers[0]"),
         with(R"("dry_multiplier":0.8,"dry_base":1,"dry_allowed_length":1,"dry_penalty_last_n":-1)", 200, ""),
         with("\"dry_sequence_breakers\":[" + repeat("\"" + repeat("b", 40) + "\",", 63) + "\"a\"]", 200, ""),
         with("\"dry_sequence_breakers\":[]", 200, "")});
  std::string many = R"("logit_bias":{"0":0)";
  for (int i = 0; i < 1024; ++i) many += ",\"x" + std::to_string(i) + "\":0";
  check("/v1/chat/completions", {with(many + "}", 400, "logit_bias")});
}

TEST_F(HostileBody, Messages) {
  const std::string url = R"([{"type":"image_url","image_url":{"url":"http://x/y.png"}}])";
  check("/v1/chat/completions",
        {{messages("[1]"), 400, "messages[0]"},
         {messages("[{}]"), 400, "messages[0].role"},
         {messages(R"([{"role":1,"content":"x"}])"), 400, "messages[0].role"},
         {messages(R"([{"role":"robot","content":"x"}])"), 400, "messages[0].role"},
         {messages(R"([{"role":"user"}])"), 400, "messages[0].content"},
         {messages(R"([{"role":"user","content":null}])"), 400, "messages[0].content"},
         {messages(R"([{"role":"user","content":5}])"), 400, "messages[0].content"},
         {messages(R"([{"role":"assistant"}])"), 400, "messages[0].content"},
         {messages(R"([{"role":"user","content":"x"},{"role":"user","content":{}}])"), 400, "messages[1].content"},
         {messages(R"([{"role":"user","content":[5]}])"), 400, "messages[0].content[0]"},
         {messages(R"([{"role":"user","content":[{"text":"x"}]}])"), 400, "messages[0].content[0].type"},
         {messages(R"([{"role":"user","content":[{"type":"text"}]}])"), 400, "messages[0].content[0].text"},
         {messages(R"([{"role":"user","content":[{"type":"text","text":1}]}])"), 400, "messages[0].content[0].text"},
         {messages(R"([{"role":"user","content":[{"type":"smell"}]}])"), 400, "messages[0].content[0].type"},
         {messages(R"([{"role":"user","content":)" + url + "}]"), 400, "messages[0].content[0].type"},
         {messages(R"([{"role":"user","content":"x","name":7}])"), 400, "messages[0].name"},
         {messages(R"([{"role":"user","content":"x","tool_calls":[]}])"), 400, "messages[0].tool_calls"},
         {messages(R"([{"role":"assistant","tool_calls":{}}])"), 400, "messages[0].tool_calls"},
         {messages(R"([{"role":"assistant","tool_calls":[{"id":"a"}]}])"), 400, "messages[0].tool_calls[0].function"},
         {messages(R"([{"role":"assistant","tool_calls":[{"function":{"name":1}}]}])"), 400,
          "messages[0].tool_calls[0].function.name"},
         {messages(R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":[]}}]}])"), 400,
          "messages[0].tool_calls[0].function.arguments"},
         {messages("[" + repeat(R"({"role":"user","content":"x"},)", 4096) + R"({"role":"user","content":"x"}])"), 400,
          "messages"}});
}

TEST_F(HostileBody, ToolsAndFormats) {
  const std::string tool = R"({"type":"function","function":{"name":"f"}})";
  const auto tools = [](const std::string& list) { return "\"tools\":" + list; };
  check("/v1/chat/completions",
        {with(tools("[1]"), 400, "tools[0]"),
         with(tools("[{}]"), 400, "tools[0].type"),
         with(tools(R"([{"type":"retrieval"}])"), 400, "tools[0].type"),
         with(tools(R"([{"type":"function"}])"), 400, "tools[0].function"),
         with(tools(R"([{"type":"function","function":{}}])"), 400, "tools[0].function.name"),
         with(tools(R"([{"type":"function","function":{"name":"a b"}}])"), 400, "tools[0].function.name"),
         with(tools(R"([{"type":"function","function":{"name":")" + repeat("n", 65) + R"("}}])"), 400,
              "tools[0].function.name"),
         with(tools(R"([{"type":"function","function":{"name":"f","parameters":"x"}}])"), 400,
              "tools[0].function.parameters"),
         with(tools(R"([{"type":"function","function":{"name":"f","strict":1}}])"), 400, "tools[0].function.strict"),
         with(tools("[" + tool + "," + tool + "]"), 400, "tools[1].function.name"),
         with(tools(R"([{"type":"function","function":{"name":"f","description":")" + repeat("d", 262145) + R"("}}])"),
              400, "tools"),
         with(tools("[" + repeat(tool + ",", 256) + tool + "]"), 400, "tools"),
         with(tools("[" + tool + R"(],"functions":[])"), 400, "functions"),
         with(tools("[" + tool + R"(],"tool_choice":"maybe")"), 400, "tool_choice"),
         with(tools("[" + tool + R"(],"tool_choice":{"type":"function"})"), 400, "tool_choice.function"),
         with(tools("[" + tool + R"(],"tool_choice":{"type":"function","function":{"name":"g"}})"), 400,
              "tool_choice.function.name"),
         with(R"("tool_choice":"required")", 400, "tool_choice"),
         with(R"("functions":[{"name":"?"}])", 400, "functions[0].name"),
         with(R"("functions":[{"name":"f"}],"function_call":{"name":"g"})", 400, "function_call.name"),
         with(R"("response_format":{})", 400, "response_format.type"),
         with(R"("response_format":{"type":"xml"})", 400, "response_format.type"),
         with(R"("response_format":{"type":"json_schema"})", 400, "response_format.json_schema.schema"),
         with(R"("response_format":{"type":"json_schema","json_schema":1})", 400, "response_format.json_schema"),
         with(R"("response_format":{"type":"json_schema","json_schema":{"schema":[]}})", 400,
              "response_format.json_schema.schema"),
         with(R"("response_format":{"type":"json_schema","json_schema":{"schema":)" + repeat(R"({"not":)", 40) + "{}" +
                  repeat("}", 40) + "}}",
              400, "response_format.json_schema.schema")});
}

TEST_F(HostileBody, Model) {
  check("/v1/chat/completions", {{R"({"messages":[{"role":"user","content":"x"}]})", 400, "model"},
                                 {R"({"model":null,"messages":[{"role":"user","content":"x"}]})", 400, "model"},
                                 {R"({"model":"gpt-4","messages":[{"role":"user","content":"x"}]})", 404, "model"},
                                 {R"({"model":"../../etc/passwd","messages":[]})", 404, "model"},
                                 {R"({"model":")" + repeat("m", 257) + R"(","messages":[]})", 400, "model"}});
  const Json error = server_->json("POST", "/v1/chat/completions", R"({"model":"gpt-4"})")["error"];
  EXPECT_EQ(error["code"], "model_not_found");
}

TEST_F(HostileBody, Completions) {
  const auto body = [](const std::string& rest) { return R"({"model":"fake",)" + rest + "}"; };
  check("/v1/completions", {{R"({"model":"fake"})", 400, "prompt"},
                            {body(R"("prompt":1)"), 400, "prompt"},
                            {body(R"("prompt":[])"), 400, "prompt"},
                            {body(R"("prompt":[1,"x"])"), 400, "prompt[1]"},
                            {body(R"("prompt":[1000])"), 400, "prompt[0]"},
                            {body(R"("prompt":[-1])"), 400, "prompt[0]"},
                            {body(R"("prompt":[[1],[1.5]])"), 400, "prompt[1][0]"},
                            {body(R"("prompt":["x",null])"), 400, "prompt[1]"},
                            {body(R"("prompt":"x","logprobs":21)"), 400, "logprobs"},
                            {body(R"("prompt":"x","logprobs":true)"), 400, "logprobs"},
                            {body(R"("prompt":"x","echo":1)"), 400, "echo"},
                            {body(R"("prompt":"x","suffix":1)"), 400, "suffix"},
                            {body(R"("prompt":"x","best_of":3)"), 400, "best_of"},
                            {body(R"("prompt":"x","max_tokens":0)"), 400, "max_tokens"},
                            {body(R"("prompt":"")"), 200, "-"},
                            {body(R"("prompt":"x","best_of":1,"suffix":null,"echo":null,"logprobs":null)"), 200, "-"}});
}

TEST_F(HostileBody, OtherEndpoints) {
  const auto body = [](const std::string& rest) { return R"({"model":"fake",)" + rest + "}"; };
  check("/v1/embeddings", {{body(R"("input":"")"), 400, "input"},
                           {body(R"("input":[])"), 400, "input"},
                           {body(R"("input":[""])"), 400, "input[0]"},
                           {body(R"("input":[[]])"), 400, "input[0]"},
                           {body(R"("input":{})"), 400, "input"},
                           {body(R"("input":"x","encoding_format":"hex")"), 400, "encoding_format"},
                           {body(R"("input":"x","dimensions":0)"), 400, "dimensions"},
                           {R"({"model":"fake"})", 400, "input"},
                           {R"({"input":"x"})", 400, "model"}});
  check("/tokenize", {{"{}", 400, "content"},
                      {R"({"content":1})", 400, "content"},
                      {R"({"content":["a",{}]})", 400, "content[1]"},
                      {R"({"content":"a","add_special":1})", 400, "add_special"}});
  check("/detokenize",
        {{"{}", 400, "tokens"}, {R"({"tokens":"x"})", 400, "tokens"}, {R"({"tokens":[1,1000]})", 400, "tokens[1]"}});
  check("/apply-template", {{"{}", 400, "messages"}});
  check("/v1/cancel", {{"{}", 400, "request_id"},
                       {R"({"request_id":""})", 400, "request_id"},
                       {R"({"request_id":null})", 400, "request_id"},
                       {R"({"request_id":7})", 400, "request_id"},
                       {R"({"request_id":"x","all":true})", 400, "all"},
                       {R"({"request_id":"unknown"})", 404, "request_id"}});
}

TEST_F(HostileBody, OddButFine) {
  check(
      "/v1/chat/completions",
      {with(
           R"("temperature":null,"top_p":null,"n":null,"stop":null,"stream":null,"stream_options":null,"tools":null,)"
           R"("tool_choice":null,"response_format":null,"logprobs":null,"top_logprobs":null,"logit_bias":null,"seed":null,)"
           R"("user":null,"max_tokens":null,"max_completion_tokens":null,"reasoning_effort":null,"modalities":null)",
           200, ""),
       with(R"("temperature":1,"top_p":1,"n":1.0,"seed":-1,"top_k":-1,"max_tokens":1e300)", 200, ""),
       with(R"("stream_options":{"include_usage":true},"store":true,"metadata":{"a":"b"},"service_tier":"auto")", 200,
            ""),
       with(
           R"("verbosity":"low","prediction":{},"web_search_options":{},"modalities":["text"],"something_new":{"x":1})",
           200, ""),
       with(R"("stop":["","x"],"max_tokens":99999999999,"tools":[],"tool_choice":"none")", 200, ""),
       {messages(R"([{"role":"system","content":""},{"role":"developer","content":"d"},{"role":"user","content":[]}])"),
        200, ""},
       {messages(R"([{"role":"assistant","content":null},{"role":"user","content":[{"type":"text","text":"a"}]}])"),
        200, ""},
       {messages(R"([{"role":"function","name":"f","content":"1"},{"role":"tool","content":"2","tool_call_id":"c"}])"),
        200, ""}});
}

TEST(StrictFields, ByOptionAndByHeader) {
  TestServer lenient;
  EXPECT_EQ(lenient.call("POST", "/v1/chat/completions", chat_body("\"best\":1")).status, 200);
  const RawResponse by_header =
      lenient.call("POST", "/v1/chat/completions", chat_body("\"best\":1"), "X-Hocket-Strict: true\r\n");
  EXPECT_EQ(by_header.status, 400);
  EXPECT_EQ(TestServer::parse(by_header.body)["error"]["param"], "best");

  ServerOptions options;
  options.strict_fields = true;
  TestServer strict(options);
  EXPECT_EQ(strict.call("POST", "/v1/chat/completions", chat_body("\"best\":1")).status, 400);
  EXPECT_EQ(strict.call("POST", "/v1/chat/completions", chat_body("\"store\":true,\"top_k\":3")).status, 200);
}

TEST(AnyModel, IsAnOption) {
  ServerOptions options;
  options.any_model = true;
  TestServer server(options);
  EXPECT_EQ(server.call("POST", "/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}]})").status, 200);
  const Json reply =
      server.json("POST", "/v1/chat/completions", R"({"model":"x","messages":[{"role":"user","content":"x"}]})");
  EXPECT_EQ(reply["model"], "org/fake:1b");
}

}  // namespace
}  // namespace hocket
