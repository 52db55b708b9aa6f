// Which format the templates of the source archive are taken for.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "chat/reply_format.h"
#include "support/byte_tokenizer.h"

namespace hocket {
namespace {

std::string archive_template(const std::string& name) {
  std::ifstream in(std::string(HOCKET_LLAMA_SOURCE) + "/models/templates/" + name, std::ios::binary);
  EXPECT_TRUE(in) << name;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

ReplyFormat detect(const std::string& source) {
  const auto parsed = ChatTemplate::parse(source, "<s>", "</s>");
  EXPECT_TRUE(parsed.ok());
  const auto tokenizer = Tokenizer::load(fake::byte_vocabulary());
  EXPECT_TRUE(tokenizer.ok());
  return detect_reply_format(**parsed, **tokenizer);
}

TEST(ReplyFormat, KnownTemplates) {
  const std::vector<std::pair<std::string, ToolSyntax>> cases{
      {"Qwen-Qwen2.5-7B-Instruct.jinja", ToolSyntax::kHermes},
      {"Qwen-Qwen3-0.6B.jinja", ToolSyntax::kHermes},
      {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja", ToolSyntax::kHermes},
      {"meta-llama-Llama-3.1-8B-Instruct.jinja", ToolSyntax::kLlama3},
      {"meta-llama-Llama-3.2-3B-Instruct.jinja", ToolSyntax::kLlama3},
      {"meta-llama-Llama-3.3-70B-Instruct.jinja", ToolSyntax::kLlama3},
      {"mistralai-Mistral-Nemo-Instruct-2407.jinja", ToolSyntax::kMistral},
      {"Mistral-Small-3.2-24B-Instruct-2506.jinja", ToolSyntax::kMistralNamed},
      {"mistralai-Ministral-3-14B-Reasoning-2512.jinja", ToolSyntax::kMistralNamed},
      {"meetkai-functionary-medium-v3.1.jinja", ToolSyntax::kFunctionary},
      {"meetkai-functionary-medium-v3.2.jinja", ToolSyntax::kRecipient},
      {"google-gemma-2-2b-it.jinja", ToolSyntax::kGeneric},
      {"microsoft-Phi-3.5-mini-instruct.jinja", ToolSyntax::kGeneric},
      // These mention <tool_call> or "parameters", but print calls that are not known.
      {"MiniMax-M3.jinja", ToolSyntax::kGeneric},
      {"unsloth-Apriel-1.5.jinja", ToolSyntax::kGeneric},
      {"CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja", ToolSyntax::kGeneric},
      {"MiniMax-M1.jinja", ToolSyntax::kGeneric},
  };
  for (const auto& [name, syntax] : cases) EXPECT_EQ(detect(archive_template(name)).tools, syntax) << name;
  EXPECT_EQ(detect(archive_template("Qwen-Qwen3-0.6B.jinja")).think_close, "</think>");
  EXPECT_EQ(detect(archive_template("mistralai-Ministral-3-14B-Reasoning-2512.jinja")).think_open, "[THINK]");
  EXPECT_EQ(detect(archive_template("ByteDance-Seed-OSS.jinja")).think_open, "<seed:think>");
  EXPECT_EQ(detect(std::string(default_chat_template())).tools, ToolSyntax::kGeneric);
  EXPECT_EQ(detect(std::string(default_chat_template())).think_open, "");
}

// A template that prints no calls, of a model whose vocabulary has a syntax for them.
TEST(ReplyFormat, TheVocabularyMayTellTheSyntax) {
  const auto parsed = ChatTemplate::parse(archive_template("LFM2-8B-A1B.jinja"), "<s>", "</s>");
  ASSERT_TRUE(parsed.ok());
  const auto without = fake::byte_tokenizer();
  EXPECT_EQ(detect_reply_format(**parsed, *without).tools, ToolSyntax::kGeneric);
  const auto with = fake::byte_tokenizer({.more_control = {"<|tool_call_start|>", "<|tool_call_end|>"}});
  const ReplyFormat format = detect_reply_format(**parsed, *with);
  ASSERT_EQ(format.tools, ToolSyntax::kLaidOut);
  EXPECT_EQ(format.layout.arguments, CallLayout::Arguments::kPython);
  EXPECT_TRUE(format.shows_special);
  TemplateInput input;
  input.messages.resize(3);
  input.messages[0].role = "user";
  input.messages[0].content = "Hi";
  input.messages[1].role = "assistant";
  input.messages[1].tool_calls = {{"1", "add", R"({"a": 1, "on": true, "s": "x"})"}, {"2", "now", ""}};
  input.messages[2].role = "tool";
  input.messages[2].content = "42";
  write_calls_as_content(input.messages, format);
  input.calls_in_content = true;
  const auto text = (*parsed)->render(input);
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("<|im_start|>assistant\n<|tool_call_start|>[add(a=1, on=True, s=\"x\"), now()]<|tool_call_end|>"
                       "<|im_end|>\n<|im_start|>tool\n<|tool_response_start|>42<|tool_response_end|>"),
            std::string::npos)
      << *text;
}

// Where a template says nothing about tools, the model is told in the syntax that it prints for calls.
TEST(ReplyFormat, ToolPromptInTheModelsSyntax) {
  const ReplyFormat format = detect(archive_template("deepseek-ai-DeepSeek-V3.1.jinja"));
  Tool tool;
  tool.name = "add";
  std::vector<Message> messages;
  add_generic_tool_prompt(messages, {tool}, {}, format);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_NE(messages[0].content->find("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function_name<｜tool▁sep｜>"
                                      "{\"argument\": \"value\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
            std::string::npos)
      << *messages[0].content;
  EXPECT_EQ(messages[0].content->find("<tool_call>"), std::string::npos);
}

// gpt-oss looks for reasoning under another name, and takes no content beside it.
TEST(ReplyFormat, ReasoningUnderTheTemplatesName) {
  const auto parsed = ChatTemplate::parse(archive_template("openai-gpt-oss-120b.jinja"), "<s>", "</s>");
  ASSERT_TRUE(parsed.ok());
  TemplateInput input;
  input.messages.resize(3);
  input.messages[0].role = "user";
  input.messages[0].content = "Hi";
  input.messages[1].role = "assistant";
  input.messages[1].reasoning = "A thought.";
  input.messages[1].content = "I look.";
  input.messages[1].tool_calls = {{"1", "add", R"({"a": 1})"}};
  input.messages[2].role = "tool";
  input.messages[2].content = "42";
  const auto text = (*parsed)->render(input);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_NE(text->find("<|channel|>analysis<|message|>A thought.\nI look.<|end|><|start|>assistant to=functions.add"
                       "<|channel|>commentary json<|message|>{\"a\": 1}<|call|>"),
            std::string::npos)
      << *text;
}

// These templates show, or take, one call a message.
TEST(ReplyFormat, ParallelCallsOfThePastAreShown) {
  for (const char* name : {"openai-gpt-oss-120b.jinja", "meta-llama-Llama-3.1-8B-Instruct.jinja"}) {
    SCOPED_TRACE(name);
    const auto parsed = ChatTemplate::parse(archive_template(name), "<s>", "</s>");
    ASSERT_TRUE(parsed.ok());
    TemplateInput input;
    input.messages.resize(5);
    input.messages[0].role = "user";
    input.messages[0].content = "Hi";
    input.messages[1].role = "assistant";
    input.messages[1].tool_calls = {{"1", "add", R"({"a": 1})"}, {"2", "mul", R"({"b": 2})"}};
    input.messages[2].role = input.messages[3].role = "tool";
    input.messages[2].tool_call_id = "2";
    input.messages[2].content = "RESULT-2";
    input.messages[3].tool_call_id = "1";
    input.messages[3].content = "RESULT-1";
    input.messages[4].role = "user";
    input.messages[4].content = "Go on";
    const auto text = (*parsed)->render(input);
    ASSERT_TRUE(text.ok()) << text.error().message;
    const auto at = [&](const char* part) { return text->find(part); };
    EXPECT_NE(at("Go on"), std::string::npos) << *text;
    EXPECT_TRUE(at("{\"a\": 1}") < at("RESULT-1") && at("RESULT-1") < at("{\"b\": 2}") &&
                at("{\"b\": 2}") < at("RESULT-2") && at("RESULT-2") < at("Go on"))
        << *text;
  }
}

TEST(ReplyFormat, CapabilitiesAreProbed) {
  const auto capabilities = [](const std::string& name) {
    const auto parsed = ChatTemplate::parse(archive_template(name), "<s>", "</s>");
    EXPECT_TRUE(parsed.ok()) << name;
    return (*parsed)->capabilities();
  };
  const auto gemma = capabilities("google-gemma-2-2b-it.jinja");
  EXPECT_FALSE(gemma.system_role);
  EXPECT_FALSE(gemma.tools);
  const auto qwen = capabilities("Qwen-Qwen3-0.6B.jinja");
  EXPECT_TRUE(qwen.system_role && qwen.tools && qwen.tool_calls && qwen.thinking);
  EXPECT_FALSE(capabilities("microsoft-Phi-3.5-mini-instruct.jinja").tools);
}

TEST(ReplyFormat, GenericToolPrompt) {
  Tool tool;
  tool.name = "add";
  tool.description = "Sum.";
  tool.parameters_json = R"({"type": "object"})";
  std::vector<Message> messages(1);
  messages[0].role = "user";
  messages[0].content = "Hi";
  add_generic_tool_prompt(messages, {tool}, {});
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_NE(messages[0].content->find(R"({"name":"add","description":"Sum.","parameters":{"type":"object"}})"),
            std::string::npos);
  EXPECT_NE(messages[0].content->find("<tool_call>"), std::string::npos);
  messages[0].content = "Be brief.";
  add_generic_tool_prompt(messages, {tool}, {ToolChoiceKind::kFunction, "add"});
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_TRUE(messages[0].content->starts_with("Be brief.\n\n"));
  EXPECT_TRUE(messages[0].content->ends_with("a call of add."));
  const std::string before = *messages[0].content;
  add_generic_tool_prompt(messages, {tool}, {ToolChoiceKind::kNone, {}});
  EXPECT_EQ(*messages[0].content, before);
}

}  // namespace
}  // namespace hocket
