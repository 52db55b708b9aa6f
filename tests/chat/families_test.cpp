// Every family of models whose calls are known: found from its template, read back from what the template prints and
// from what models write, whole, at every split and byte by byte, and enforced.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json.h"
#include "chat/reply_format.h"
#include "chat/tool_syntax/call_writer.h"
#include "reply_reading.h"
#include "support/byte_tokenizer.h"
#include "tokenizer/grammar.h"

namespace hocket {
namespace {

using testing::Call;
using testing::Reply;
using Arguments = CallLayout::Arguments;

struct Family {
  const char* file;  // of the template
  ToolSyntax syntax;
  Arguments arguments;
  const char* think_open;
  // An answer with two calls as such a model writes it: get_weather of Zürich, zip "8001", 3 days; then now.
  std::string answer;
};
void PrintTo(const Family& family, std::ostream* out) {
  *out << family.file;
}

const std::string kJson = R"({"city": "Zürich", "zip": "8001", "days": 3})";

std::string xml(const std::string& open, const std::string& close) {
  const auto arg = [](const std::string& key, const std::string& value) {
    return "<parameter=" + key + ">\n" + value + "\n</parameter>\n";
  };
  return open + "\n<function=get_weather>\n" + arg("city", "Zürich") + arg("zip", "8001") + arg("days", "3") +
         "</function>\n" + close + "\n" + open + "\n<function=now>\n</function>\n" + close;
}
const std::string kXml = xml("<tool_call>", "</tool_call>");
const std::string kArgKeys =
    "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Zürich</arg_value>\n<arg_key>zip</arg_key>\n"
    "<arg_value>8001</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n"
    "<tool_call>now\n</tool_call>";
const std::string kArgKeysTight =
    "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Zürich</arg_value><arg_key>zip</arg_key>"
    "<arg_value>8001</arg_value><arg_key>days</arg_key><arg_value>3</arg_value></tool_call><tool_call>now</tool_call>";
const std::string kKimi =
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>" + kJson +
    "<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
    "<|tool_calls_section_end|>";
const std::string kDeepSeek3 =
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n" + kJson +
    "\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜>"
    "<｜tool▁calls▁end｜>";
const std::string kDeepSeek31 = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>" + kJson +
                                "<｜tool▁call▁end｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
                                "<｜tool▁calls▁end｜>";
const std::string kGemma =
    "<|tool_call>call:get_weather{city:<|\"|>Zürich<|\"|>,zip:<|\"|>8001<|\"|>,days:3}<tool_call|>"
    "<|tool_call>call:now{}<tool_call|>";
const std::string kLfm =
    "<|tool_call_start|>[get_weather(city='Zürich', zip=\"8001\", days=3), now()]<|tool_call_end|>";
const std::string kMiniMax =
    "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Zürich</parameter>\n"
    "<parameter name=\"zip\">8001</parameter>\n<parameter name=\"days\">3</parameter>\n</invoke>\n"
    "<invoke name=\"now\">\n</invoke>\n</minimax:tool_call>";
const std::string kHunyuan =
    "<tool_calls:opensource>\n<tool_call:opensource>get_weather<tool_sep:opensource>\n<arg_key:opensource>city"
    "</arg_key:opensource>\n<arg_value:opensource>Zürich</arg_value:opensource>\n<arg_key:opensource>zip"
    "</arg_key:opensource>\n<arg_value:opensource>8001</arg_value:opensource>\n<arg_key:opensource>days"
    "</arg_key:opensource>\n<arg_value:opensource>3</arg_value:opensource>\n</tool_call:opensource>\n"
    "<tool_call:opensource>now<tool_sep:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>";
const std::string kHermes = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": " + kJson +
                            "}\n</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";

const Family kFamilies[] = {
    {"GLM-4.6.jinja", ToolSyntax::kLaidOut, Arguments::kTagged, "<think>", kArgKeys},
    {"GLM-4.7-Flash.jinja", ToolSyntax::kLaidOut, Arguments::kTagged, "<think>", kArgKeysTight},
    {"inclusionai-ling-3.0-flash.jinja", ToolSyntax::kLaidOut, Arguments::kTagged, "<think>", kArgKeys},
    {"poolside-Laguna-S-2.1.jinja", ToolSyntax::kLaidOut, Arguments::kTagged, "<think>", kArgKeysTight},
    {"poolside-Laguna-XS.2.jinja", ToolSyntax::kLaidOut, Arguments::kTagged, "<think>", kArgKeys},
    {"Spark2.5.jinja", ToolSyntax::kLaidOut, Arguments::kTagged, "<think>", kArgKeysTight},
    {"Qwen3-Coder.jinja", ToolSyntax::kLaidOut, Arguments::kTagged, "", kXml},
    {"Qwen3.5-4B.jinja", ToolSyntax::kLaidOut, Arguments::kTagged, "<think>", kXml},
    {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.jinja", ToolSyntax::kLaidOut, Arguments::kTagged, "<think>", kXml},
    {"StepFun3.5-Flash.jinja", ToolSyntax::kLaidOut, Arguments::kTagged, "<think>", kXml},
    {"ByteDance-Seed-OSS.jinja", ToolSyntax::kLaidOut, Arguments::kTagged, "<seed:think>",
     "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Zürich</parameter>\n<parameter=zip>8001</parameter>\n"
     "<parameter=days>3</parameter>\n</function>\n</seed:tool_call><seed:tool_call>\n<function=now>\n</function>\n"
     "</seed:tool_call>"},
    {"MiniMax-M2.jinja", ToolSyntax::kLaidOut, Arguments::kTagged, "<think>", kMiniMax},
    {"tencent-Hy3.jinja", ToolSyntax::kLaidOut, Arguments::kTagged, "<think:opensource>", kHunyuan},
    {"Kimi-K2-Instruct.jinja", ToolSyntax::kLaidOut, Arguments::kJson, "", kKimi},
    {"Kimi-K2-Thinking.jinja", ToolSyntax::kLaidOut, Arguments::kJson, "<think>", kKimi},
    {"moonshotai-Kimi-K2.jinja", ToolSyntax::kLaidOut, Arguments::kJson, "", kKimi},
    {"deepseek-ai-DeepSeek-V3.1.jinja", ToolSyntax::kLaidOut, Arguments::kJson, "<think>", kDeepSeek31},
    {"llama-cpp-deepseek-r1.jinja", ToolSyntax::kLaidOut, Arguments::kJson, "<think>", kDeepSeek3},
    {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja", ToolSyntax::kLaidOut, Arguments::kJson, "<think>", kDeepSeek3},
    {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja", ToolSyntax::kLaidOut, Arguments::kJson, "<think>", kDeepSeek3},
    {"google-gemma-4-31B-it.jinja", ToolSyntax::kLaidOut, Arguments::kGemma, "<|channel>thought\n", kGemma},
    {"google-gemma-4-31B-it-interleaved.jinja", ToolSyntax::kLaidOut, Arguments::kGemma, "<|channel>thought\n", kGemma},
    {"LFM2.5-8B-A1B.jinja", ToolSyntax::kLaidOut, Arguments::kPython, "<think>", kLfm},
    {"openai-gpt-oss-120b.jinja", ToolSyntax::kHarmony, Arguments::kJson, "<|channel|>analysis<|message|>", ""},
    {"Qwen-Qwen3-0.6B.jinja", ToolSyntax::kHermes, Arguments::kJson, "<think>", kHermes},
    {"MiMo-VL.jinja", ToolSyntax::kHermes, Arguments::kJson, "", kHermes},
    {"ibm-granite-granite-4.0.jinja", ToolSyntax::kHermes, Arguments::kJson, "", kHermes},
};

std::vector<Tool> family_tools() {
  std::vector<Tool> tools(2);
  tools[0].name = "get_weather";
  tools[0].description = "Weather.";
  tools[0].parameters_json =
      R"({"type":"object","properties":{"city":{"type":"string"},"zip":{"type":"string"},"days":{"type":"integer"}},)"
      R"("required":["city","zip","days"]})";
  tools[1].name = "now";
  tools[1].description = "Time.";
  tools[1].parameters_json = R"({"type":"object","properties":{}})";
  return tools;
}

class FamilyTest : public ::testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    tokenizer_ = fake::byte_tokenizer();
    ASSERT_NE(tokenizer_, nullptr);
    std::ifstream in(std::string(HOCKET_LLAMA_SOURCE) + "/models/templates/" + GetParam().file, std::ios::binary);
    ASSERT_TRUE(in);
    std::stringstream source;
    source << in.rdbuf();
    auto parsed = ChatTemplate::parse(source.str(), "<s>", "</s>");
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    template_ = std::move(*parsed);
    format_ = detect_reply_format(*template_, *tokenizer_);
  }

  static void expect_calls(const Reply& reply) {
    ASSERT_EQ(reply.calls.size(), 2u);
    EXPECT_EQ(reply.calls[0].name, "get_weather");
    const auto arguments = parse_json(reply.calls[0].arguments);
    ASSERT_TRUE(arguments.ok()) << reply.calls[0].arguments;
    EXPECT_EQ(dump_json(*arguments), dump_json(Json::parse(kJson)));
    EXPECT_EQ(reply.calls[1].name, "now");
    EXPECT_EQ(reply.calls[1].arguments, "{}");
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> template_;
  ReplyFormat format_;
};

TEST_P(FamilyTest, IsFoundFromTheTemplate) {
  EXPECT_EQ(format_.tools, GetParam().syntax);
  EXPECT_EQ(format_.layout.arguments, GetParam().arguments);
  EXPECT_EQ(format_.think_open, GetParam().think_open);
}

// What the template prints for calls of the past is what the reader takes and the writer writes.
TEST_P(FamilyTest, ReadsWhatTheTemplatePrints) {
  if (format_.tools != ToolSyntax::kLaidOut) return;
  TemplateInput input;
  input.messages.resize(4);
  input.messages[0].role = "user";
  input.messages[0].content = "Hello";
  input.messages[1].role = "assistant";
  input.messages[1].tool_calls = {{"abc123XYZ", "get_weather", kJson}, {"abc123XYy", "now", "{}"}};
  for (std::size_t i : {2u, 3u}) {
    input.messages[i].role = "tool";
    input.messages[i].content = "42";
    input.messages[i].name = input.messages[1].tool_calls[i - 2].name;
    input.messages[i].tool_call_id = input.messages[1].tool_calls[i - 2].id;
  }
  input.tools = family_tools();
  const bool prints = template_->capabilities().tool_calls;
  input.calls_in_content = !prints;
  if (!prints) write_calls_as_content(input.messages, format_);
  const auto text = template_->render(input);
  ASSERT_TRUE(text.ok()) << text.error().message;
  const CallSpelling& s = format_.layout.spelling;
  const std::size_t at = text->find(s.shared_lead + s.lead + "get_weather");
  ASSERT_NE(at, std::string::npos) << *text;
  const std::string calls = write_calls(format_.layout, {{"", "get_weather", kJson}});
  if (format_.layout.arguments != Arguments::kPython && format_.layout.arguments != Arguments::kGemma) {
    const std::string one = calls.substr(0, calls.size() - s.shared_trail.size());
    EXPECT_EQ(text->substr(at, one.size()), one);
  }
  Reply reply = testing::read_reply(format_, {text->substr(at)}, false, family_tools());
  // Gemma sorts the arguments.
  if (format_.layout.arguments == Arguments::kGemma && !reply.calls.empty()) {
    EXPECT_EQ(reply.calls[0].arguments, R"({"city": "Zürich", "days": 3, "zip": "8001"})");
    reply.calls[0].arguments = kJson;
  }
  expect_calls(reply);
}

TEST_P(FamilyTest, ReadsAnswersAtEverySplit) {
  if (format_.tools == ToolSyntax::kHarmony) return;  // harmony_test.cpp
  const std::string think =
      format_.think_open.empty() ? "" : format_.think_open + "Let me see." + format_.think_close + "\n";
  const std::string text = think + "Looking.\n" + GetParam().answer + "\nDone.";
  const Reply whole = testing::read_reply(format_, {text}, false, family_tools());
  expect_calls(whole);
  EXPECT_EQ(whole.reasoning, think.empty() ? "" : "Let me see.");
  EXPECT_EQ(whole.content, "Looking.Done.");
  EXPECT_EQ(testing::read_reply(format_, testing::single_bytes(text), false, family_tools()), whole);
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const Reply split = testing::read_reply(format_, {text.substr(0, at), text.substr(at)}, false, family_tools());
    ASSERT_EQ(split, whole) << text.substr(0, at) << "|" << text.substr(at);
  }
  // Cut off anywhere, nothing that was not syntax is lost, and the parser does not fail.
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const Reply cut = testing::read_reply(format_, {text.substr(0, at)}, false, family_tools());
    ASSERT_EQ(testing::read_reply(format_, testing::single_bytes(text.substr(0, at)), false, family_tools()), cut)
        << text.substr(0, at);
  }
}

TEST_P(FamilyTest, UnknownToolsStayContent) {
  if (format_.tools == ToolSyntax::kHarmony) return;
  Tool other;
  other.name = "other";
  const Reply reply = testing::read_reply(format_, testing::single_bytes(GetParam().answer), false, {other});
  EXPECT_TRUE(reply.calls.empty());
  std::string content = reply.content, answer = GetParam().answer;
  std::erase_if(content, [](char c) { return c == '\n'; });
  std::erase_if(answer, [](char c) { return c == '\n'; });
  EXPECT_EQ(content, answer);
}

TEST_P(FamilyTest, CallsAreEnforced) {
  auto compiler = GrammarCompiler::create(*tokenizer_, tokenizer_->size());
  ASSERT_TRUE(compiler.ok());
  const auto make = [&](ToolChoice choice, ResponseFormat response = {}) {
    auto made = make_constraint(**compiler, *tokenizer_, format_, family_tools(), choice, true, response, "", false);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return made.ok() ? std::move(*made) : nullptr;
  };
  const auto follows = [&](const std::unique_ptr<TokenConstraint>& constraint, const std::string& text) {
    return constraint != nullptr && testing::follows(*constraint, *tokenizer_, text);
  };
  const bool harmony = format_.tools == ToolSyntax::kHarmony;
  const auto spelled = [&](const std::vector<ToolCall>& calls) {
    if (format_.tools == ToolSyntax::kLaidOut) return write_calls(format_.layout, calls);
    std::string text;
    for (const ToolCall& call : calls) {
      text +=
          harmony
              ? "<|channel|>commentary to=functions." + call.name + " <|constrain|>json<|message|>" + call.arguments
              : "<tool_call>\n{\"name\": \"" + call.name + "\", \"arguments\": " + call.arguments + "}\n</tool_call>";
    }
    return text;
  };
  std::string arguments = kJson;
  const std::string one = spelled({{"", "get_weather", arguments}}), now = spelled({{"", "now", "{}"}});
  const std::string content = harmony ? "<|channel|>final<|message|>" : "";
  const std::string wrong = spelled({{"", "get_weather", R"({"city": "Zürich", "zip": "8001", "days": true})"}});

  const auto required = make({ToolChoiceKind::kRequired, {}});
  EXPECT_TRUE(follows(required, one)) << one;
  EXPECT_TRUE(follows(required, now)) << now;
  if (!harmony) {
    EXPECT_TRUE(follows(required, spelled({{"", "get_weather", arguments}, {"", "now", "{}"}})));
  }
  EXPECT_FALSE(follows(required, content + "Hello"));
  EXPECT_FALSE(follows(required, wrong));
  EXPECT_FALSE(follows(required, ""));
  const auto named = make({ToolChoiceKind::kFunction, "now"});
  EXPECT_TRUE(follows(named, now));
  EXPECT_FALSE(follows(named, one));
  const auto optional = make({});
  EXPECT_TRUE(follows(optional, content + "Hello."));
  EXPECT_TRUE(follows(optional, harmony ? one : "Well. " + one));
  EXPECT_FALSE(follows(optional, wrong));
  // Either a call or an answer of the schema.
  const auto either = make({}, {ResponseFormat::Kind::kJsonSchema,
                                R"({"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]})"});
  EXPECT_TRUE(follows(either, one));
  EXPECT_TRUE(follows(either, content + "{\"ok\": true}"));
  EXPECT_FALSE(follows(either, content + "{\"ok\": 1}"));
  EXPECT_FALSE(follows(either, content + "Hello"));
  // And after thinking.
  if (harmony) {
    EXPECT_TRUE(follows(either, "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant" + one));
  }
  if (!format_.think_open.empty() && !harmony) {
    auto made = make_constraint(**compiler, *tokenizer_, format_, family_tools(), {}, true,
                                {ResponseFormat::Kind::kJsonObject, {}}, "", true);
    ASSERT_TRUE(made.ok());
    EXPECT_TRUE(follows(*made, "Hm." + format_.think_close + "{\"x\": 1}"));
    EXPECT_FALSE(follows(*made, "Hm." + format_.think_close + "x"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, FamilyTest, ::testing::ValuesIn(kFamilies), [](const auto& which) {
  std::string name = which.param.file;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
});

}  // namespace
}  // namespace hocket
