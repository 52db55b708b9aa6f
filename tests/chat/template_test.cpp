// From messages to variables: what is passed, and what is done for templates that lack something.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "chat/template.h"

namespace hocket {
namespace {

Message message(const std::string& role, std::optional<std::string> content) {
  Message out;
  out.role = role;
  out.content = std::move(content);
  return out;
}

std::unique_ptr<ChatTemplate> parse(const std::string& source) {
  auto parsed = ChatTemplate::parse(source, "<s>", "</s>");
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  return parsed.ok() ? std::move(*parsed) : nullptr;
}

const std::string kPlain = "{% for m in messages %}[{{ m.role }}: {{ m.content }}]{% endfor %}";
const std::string kNoSystem =
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "[{{ m.role }}: {{ m.content }}]{% endfor %}";

TEST(ChatTemplate, SystemTextGoesInFrontOfTheUsers) {
  TemplateInput input;
  input.messages = {message("system", "S"), message("user", "U"), message("assistant", "A"), message("developer", "D"),
                    message("user", "V")};
  EXPECT_EQ(*parse(kPlain)->render(input), "[system: S][user: U][assistant: A][system: D][user: V]");
  EXPECT_EQ(*parse(kNoSystem)->render(input), "[user: S\nU][assistant: A][user: D\nV]");
  input.messages = {message("system", "S")};
  EXPECT_EQ(*parse(kNoSystem)->render(input), "[user: S]");
}

TEST(ChatTemplate, VariablesAndTheirOrder) {
  TemplateInput input;
  input.messages = {message("user", "U")};
  const auto text = [&](const std::string& source) { return *parse(source)->render(input); };
  EXPECT_EQ(
      text("{{ bos_token }}{{ eos_token }}{{ enable_thinking }}{{ add_generation_prompt }}{{ tools is defined }}"),
      "<s></s>TrueTrueFalse");
  input.kwargs_json = R"({"enable_thinking": false, "bos_token": "B", "own": {"a": [1]}})";
  EXPECT_EQ(text("{{ bos_token }}{{ enable_thinking }}{{ own.a[0] }}"), "BFalse1");
  input.kwargs_json = "[1]";
  const auto wrong = parse(kPlain)->render(input);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().param, "chat_template_kwargs");
}

TEST(ChatTemplate, CallsBecomeTextWhereTheTemplateKnowsNone) {
  TemplateInput input;
  Message call = message("assistant", std::nullopt);
  call.tool_calls = {{"1", "add", R"({"a": 1})"}, {"2", "now", ""}};
  Message first = message("tool", "3"), second = message("tool", "noon");
  input.messages = {message("user", "U"), call, first, second};
  EXPECT_EQ(*parse(kPlain)->render(input),
            "[user: U][assistant: <tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>\n"
            "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>]"
            "[user: <tool_response>\n3\n</tool_response>\n<tool_response>\nnoon\n</tool_response>]");
}

TEST(ChatTemplate, ArgumentsComeAsTheTemplateWantsThem) {
  TemplateInput input;
  Message call = message("assistant", std::nullopt);
  call.tool_calls = {{"1", "add", R"({"a": 1, "b": "x"})"}};
  input.messages = {message("user", "U"), call};
  const std::string loop = "{% for m in messages %}{% for c in m.tool_calls or [] %}";
  const std::string end = "{% endfor %}{% endfor %}";
  EXPECT_EQ(*parse(loop + "{{ c.function.arguments | tojson }}" + end)->render(input), R"({"a": 1, "b": "x"})");
  EXPECT_EQ(*parse(loop + "{{ '' + c.function.arguments }}" + end)->render(input), R"({"a": 1, "b": "x"})");
  EXPECT_EQ(
      *parse(loop + "{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }};{% endfor %}" + end)->render(input),
      "a=1;b=x;");
}

TEST(ChatTemplate, ContinuesTheLastMessage) {
  TemplateInput input;
  input.continue_final_message = true;
  input.messages = {message("user", "One"), message("assistant", "One")};
  EXPECT_EQ(*parse(std::string(default_chat_template()))->render(input),
            "<|im_start|>user\nOne<|im_end|>\n<|im_start|>assistant\nOne");
  input.messages.back().content = "One ";
  EXPECT_EQ(*parse(std::string(default_chat_template()))->render(input),
            "<|im_start|>user\nOne<|im_end|>\n<|im_start|>assistant\nOne ");
  EXPECT_EQ(*parse("{% for m in messages %}[{{ m.content | trim }}]{% endfor %}")->render(input), "[One][One");
  input.messages.pop_back();
  EXPECT_FALSE(parse(kPlain)->render(input).ok());
}

TEST(ChatTemplate, BadToolsAreNamed) {
  TemplateInput input;
  input.messages = {message("user", "U")};
  input.tools.emplace_back();
  input.tools[0].parameters_json = "{";
  const auto text = parse(kPlain)->render(input);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().param, "tools");
}

}  // namespace
}  // namespace hocket
