// What meets in the engine only: thinking, tool calls and grammars on their way from request to deltas.
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "engine/service_fixture.h"

namespace hocket::testing_engine {
namespace {

class ReplyFormatTest : public ServiceTest {
 protected:
  static constexpr const char* kThinkingTemplate =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% if enable_thinking %}<think>\n{% else %}"
      "<think>\n\n</think>\n\n{% endif %}{% endif %}";

  static ChatRequest with_tool(const std::string& text) {
    ChatRequest request = ask(text);
    Tool tool;
    tool.name = "add";
    tool.parameters_json =
        R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false})";
    request.tools.push_back(tool);
    return request;
  }
};

TEST_F(ReplyFormatTest, AnAnswerThatBeginsInsideThinkingIsSplit) {
  chat_template = kThinkingTemplate;
  start_saying("<think>\nWhy not</think>\n\nYes");  // the prompt says the first line
  const Collected got = collect(service->chat(ask("Hi")));
  ASSERT_FALSE(got.error) << got.error->message;
  EXPECT_EQ(got.only().reasoning, "Why not");
  EXPECT_EQ(got.only().content.substr(got.only().content.find_first_not_of('\n')), "Yes");
  EXPECT_EQ(got.only().content.find("think"), std::string::npos);
  EXPECT_GE(got.usage.reasoning_tokens, std::string("Why not</think>").size());
  EXPECT_LE(got.usage.reasoning_tokens, std::string("Why not</think>\n\n").size());
  EXPECT_TRUE(service->info().thinking);
}

TEST_F(ReplyFormatTest, WithoutThinkingThereIsOnlyContent) {
  chat_template = kThinkingTemplate;
  start_saying("<think>\n\n</think>\n\nYes");
  ChatRequest request = ask("Mind the <think> in here");
  request.enable_thinking = false;
  const Collected got = collect(service->chat(request));
  EXPECT_EQ(got.only().reasoning, "");
  EXPECT_EQ(got.only().content, "Yes");
  EXPECT_EQ(got.usage.reasoning_tokens, 0u);
}

TEST_F(ReplyFormatTest, AToolCallIsReadFromTheText) {
  start_saying("<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>");
  const Collected got = collect(service->chat(with_tool("One more")));
  ASSERT_FALSE(got.error) << got.error->message;
  ASSERT_EQ(got.only().call_names, std::vector<std::string>{"add"}) << got.only().content;
  const auto arguments = parse_json(got.only().call_arguments.at(0));
  ASSERT_TRUE(arguments.ok()) << got.only().call_arguments.at(0);
  EXPECT_EQ((*arguments)["a"], 1);
  EXPECT_EQ(got.only().reason, FinishReason::kToolCalls);
}

TEST_F(ReplyFormatTest, WithToolChoiceNoneTheSameTextIsContent) {
  start_saying("<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>");
  ChatRequest request = with_tool("One more");
  request.tool_choice.kind = ToolChoiceKind::kNone;
  const Collected got = collect(service->chat(request));
  EXPECT_TRUE(got.only().call_names.empty());
  EXPECT_EQ(got.only().reason, FinishReason::kStop);
}

TEST_F(ReplyFormatTest, ARequiredCallIsMadeByAModelThatWantsToTalk) {
  start_saying("I would rather not.");
  ChatRequest request = with_tool("One more");
  request.tool_choice.kind = ToolChoiceKind::kRequired;
  request.params.max_tokens = 400;
  request.params.temperature = 0.0f;
  const Collected got = collect(service->chat(request));
  ASSERT_FALSE(got.error) << got.error->message;
  ASSERT_FALSE(got.only().call_names.empty()) << got.only().content;
  EXPECT_EQ(got.only().call_names[0], "add");
}

TEST_F(ReplyFormatTest, ToolChoiceOfAnUnknownFunctionIsRefused) {
  start_saying("ok");
  ChatRequest request = with_tool("One more");
  request.tool_choice = {ToolChoiceKind::kFunction, "subtract"};
  const auto reply = service->chat(request);
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().param, "tool_choice");
}

TEST_F(ReplyFormatTest, AGrammarHoldsEveryChoice) {
  start_saying("maybe");
  ChatRequest request = ask("Well?");
  request.params.grammar = "root ::= \"yes\" | \"no\"";
  request.params.n = 3;
  request.params.max_tokens = 10;
  const Collected got = collect(service->chat(request));
  ASSERT_FALSE(got.error) << got.error->message;
  ASSERT_EQ(got.choices.size(), 3u);
  for (const auto& choice : got.choices) {
    EXPECT_TRUE(choice.content == "yes" || choice.content == "no") << choice.content;
    EXPECT_EQ(choice.reason, FinishReason::kStop);
  }
}

TEST_F(ReplyFormatTest, AJsonSchemaHoldsACompletion) {
  script.next = [](std::span<const TokenId>) { return TokenId{'x'}; };
  start();
  CompletionRequest request = completion("Some JSON: ");
  request.response_format.kind = ResponseFormat::Kind::kJsonSchema;
  request.response_format.schema_json = R"({"enum": ["red", "green"]})";
  request.params.max_tokens = 20;
  const Collected got = collect(service->complete(request));
  ASSERT_FALSE(got.error) << got.error->message;
  EXPECT_TRUE(got.only().content == "\"red\"" || got.only().content == "\"green\"") << got.only().content;
}

TEST_F(ReplyFormatTest, ABadGrammarIsRefusedBeforeQueueing) {
  start_saying("ok");
  ChatRequest request = ask("Well?");
  request.params.grammar = "root ::= (";
  const auto reply = service->chat(request);
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(reply.error().param, "grammar");
  EXPECT_TRUE(runner->steps().empty());
}

}  // namespace
}  // namespace hocket::testing_engine
