#include "chat/reply_format.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <random>

#include "base/json.h"
#include "chat/tool_syntax/syntax.h"

namespace hocket {
namespace {

struct ThinkingTags {
  std::string_view open, close;
};
constexpr std::array<ThinkingTags, 5> kThinkingTags{{
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"},
    {"<seed:think>", "</seed:think>"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
    {"<|inner_prefix|>", "<|inner_suffix|>"},
}};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

ToolSyntax detect_tools(const ChatTemplate& chat_template) {
  const std::string& source = chat_template.source();
  const ChatTemplate::Capabilities& can = chat_template.capabilities();
  if (!can.tools) return ToolSyntax::kGeneric;
  if (has(source, "[TOOL_CALLS]")) return has(source, "[ARGS]") ? ToolSyntax::kMistralNamed : ToolSyntax::kMistral;
  if (has(source, ">>>")) return ToolSyntax::kRecipient;
  // <tool_call> around <function=…> is another format: parameters in tags of their own.
  if (has(source, "<function=")) return has(source, "<parameter=") ? ToolSyntax::kGeneric : ToolSyntax::kFunctionary;
  if (has(source, "<tool_call>")) return ToolSyntax::kHermes;
  if (has(source, "<|python_tag|>") || has(source, "ipython") || has(source, "\"parameters\": ")) {
    return ToolSyntax::kLlama3;
  }
  return ToolSyntax::kGeneric;
}

bool is_control(const Tokenizer& tokenizer, std::string_view text) {
  const auto id = tokenizer.find(text);
  return id && tokenizer.type(*id) == TokenType::kControl;
}

}  // namespace

ReplyFormat detect_reply_format(const ChatTemplate& chat_template, const Tokenizer& tokenizer) {
  ReplyFormat format;
  format.tools = detect_tools(chat_template);
  for (const ThinkingTags& tags : kThinkingTags) {
    const bool in_vocabulary = tokenizer.find(tags.open) && tokenizer.find(tags.close);
    if (!has(chat_template.source(), tags.close) && !in_vocabulary) continue;
    format.think_open = tags.open;
    format.think_close = tags.close;
    break;
  }
  for (const std::string_view opener : syntax_row(format.tools).openers) {
    format.shows_special = format.shows_special || is_control(tokenizer, opener);
  }
  for (const std::string* tag : {&format.think_open, &format.think_close}) {
    format.shows_special = format.shows_special || is_control(tokenizer, *tag);
  }
  return format;
}

void add_generic_tool_prompt(std::vector<Message>& messages, const std::vector<Tool>& tools, const ToolChoice& choice) {
  if (tools.empty() || choice.kind == ToolChoiceKind::kNone) return;
  std::string text = "You can call these functions:\n<tools>\n";
  for (const Tool& tool : tools) {
    Json function = {{"name", tool.name}};
    if (!tool.description.empty()) function["description"] = tool.description;
    if (auto parameters = parse_json(tool.parameters_json); parameters) function["parameters"] = std::move(*parameters);
    text += dump_json(function) + "\n";
  }
  text +=
      "</tools>\nTo call one, write its name and its arguments as JSON in this form and nothing else:\n"
      "<tool_call>\n{\"name\": \"function name\", \"arguments\": {\"argument\": \"value\"}}\n</tool_call>\n";
  if (choice.kind == ToolChoiceKind::kRequired) {
    text += "Answer with a function call.";
  } else if (choice.kind == ToolChoiceKind::kFunction) {
    text += fmt::format("Answer with a call of {}.", choice.function);
  } else {
    text += "Results come back in <tool_response> tags. Call a function only when it helps; otherwise answer as usual.";
  }
  if (!messages.empty() && (messages.front().role == "system" || messages.front().role == "developer")) {
    std::string content = messages.front().content.value_or("");
    if (!content.empty()) content += "\n\n";
    messages.front().content = content + text;
    return;
  }
  Message system;
  system.role = "system";
  system.content = std::move(text);
  messages.insert(messages.begin(), std::move(system));
}

std::string make_tool_call_id() {
  static constexpr std::string_view kAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::random_device random;
  std::uniform_int_distribution<std::size_t> pick(0, kAlphabet.size() - 1);
  std::string id = "call_";
  for (int i = 0; i < 24; ++i) id.push_back(kAlphabet[pick(random)]);
  return id;
}

}  // namespace hocket
