#include "chat/reply_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "base/json.h"
#include "chat/template_probe.h"
#include "chat/tool_syntax/call_writer.h"
#include "chat/tool_syntax/syntax.h"

namespace hocket {
namespace {

struct ThinkingTags {
  std::string_view open, close;
};
constexpr std::array<ThinkingTags, 7> kThinkingTags{{
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"},
    {"<seed:think>", "</seed:think>"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
    {"<|inner_prefix|>", "<|inner_suffix|>"},
    {"<|channel>thought\n", "<channel|>"},
    {"<think:opensource>", "</think:opensource>"},
}};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

constexpr ThinkingTags kHarmonyThinking{"<|channel|>analysis<|message|>", "<|end|>"};

bool prints_harmony(const std::string& sample) {
  return has(sample, "<|channel|>") && has(sample, "<|message|>") && has(sample, "to=functions." + call_probe().first);
}

// Whether `mark` and an object stand before the first probed call.
bool prints_object_after(const std::string& sample, std::string_view mark) {
  for (std::size_t at = sample.find(mark); at != std::string::npos; at = sample.find(mark, at + 1)) {
    const std::size_t next = sample.find_first_not_of(" \t\r\n", at + mark.size());
    const std::size_t call = sample.find('"' + call_probe().first + '"', at);
    if (next != std::string::npos && sample[next] == '{' && call != std::string::npos && call - next < 40) return true;
  }
  return false;
}

// Calls that are an object. What the template prints must agree with what its source mentions, if it prints any.
ToolSyntax detect_object_syntax(const std::string& source, const std::string& sample) {
  if (has(source, "[TOOL_CALLS]")) return has(source, "[ARGS]") ? ToolSyntax::kMistralNamed : ToolSyntax::kMistral;
  if (has(source, ">>>")) return ToolSyntax::kRecipient;
  // <tool_call> around <function=…> is another format: parameters in tags of their own.
  if (has(source, "<function=")) return has(source, "<parameter=") ? ToolSyntax::kGeneric : ToolSyntax::kFunctionary;
  if (has(source, "<tool_call>")) {
    const bool printed = sample.empty() || prints_object_after(sample, "<tool_call>");
    return printed ? ToolSyntax::kHermes : ToolSyntax::kGeneric;
  }
  if (!sample.empty() && !has(sample, "{\"name\": \"" + call_probe().first + "\", \"parameters\": ")) {
    return ToolSyntax::kGeneric;
  }
  if (has(source, "<|python_tag|>") || has(source, "ipython") || has(source, "\"parameters\": ")) {
    return ToolSyntax::kLlama3;
  }
  return ToolSyntax::kGeneric;
}

void detect_tools(const ChatTemplate& chat_template, const Tokenizer& tokenizer, ReplyFormat& format) {
  const ChatTemplate::Capabilities& can = chat_template.capabilities();
  const std::string& sample = chat_template.call_sample();
  if (prints_harmony(sample)) {
    format.tools = ToolSyntax::kHarmony;
    return;
  }
  std::optional<CallLayout> layout = find_call_layout(sample, call_probe());
  if (!layout && can.tools && !can.tool_calls) {
    layout = find_call_layout_if([&](const std::string& piece) { return tokenizer.find(piece).has_value(); });
  }
  if (layout) {
    format.tools = ToolSyntax::kLaidOut;
    format.layout = std::move(*layout);
  } else if (can.tools) {
    format.tools = detect_object_syntax(chat_template.source(), sample);
  }
}

// Whether a tag is written with control tokens, alone or among other text.
bool has_control(const Tokenizer& tokenizer, const std::string& tag) {
  if (tag.empty()) return false;
  const auto ids = tokenizer.encode(tag, {false, true});
  return ids.ok() &&
         std::any_of(ids->begin(), ids->end(), [&](TokenId id) { return tokenizer.type(id) == TokenType::kControl; });
}

}  // namespace

ReplyFormat detect_reply_format(const ChatTemplate& chat_template, const Tokenizer& tokenizer) {
  ReplyFormat format;
  detect_tools(chat_template, tokenizer, format);
  if (format.tools == ToolSyntax::kHarmony) {
    format.think_open = kHarmonyThinking.open;
    format.think_close = kHarmonyThinking.close;
  } else {
    for (const ThinkingTags& tags : kThinkingTags) {
      const bool in_vocabulary = tokenizer.find(tags.open) && tokenizer.find(tags.close);
      // Some put their tags together, so that only what they print has them.
      const bool in_template = has(chat_template.source(), tags.close) || has(chat_template.call_sample(), tags.close);
      if (!in_template && !in_vocabulary) continue;
      format.think_open = tags.open;
      format.think_close = tags.close;
      break;
    }
  }
  std::vector<std::string> tags = call_syntax(format).openers;
  tags.insert(tags.end(), {format.think_open, format.think_close});
  if (format.tools == ToolSyntax::kLaidOut) {
    for (const auto* pieces : {&format.layout.lead, &format.layout.name_close, &format.layout.trail}) {
      tags.insert(tags.end(), pieces->begin(), pieces->end());
    }
  }
  format.shows_special =
      std::any_of(tags.begin(), tags.end(), [&](const std::string& tag) { return has_control(tokenizer, tag); });
  return format;
}

void add_generic_tool_prompt(std::vector<Message>& messages, const std::vector<Tool>& tools, const ToolChoice& choice,
                             const ReplyFormat& format) {
  if (tools.empty() || choice.kind == ToolChoiceKind::kNone) return;
  std::string text = "You can call these functions:\n<tools>\n";
  for (const Tool& tool : tools) {
    Json function = {{"name", tool.name}};
    if (!tool.description.empty()) function["description"] = tool.description;
    if (auto parameters = parse_json(tool.parameters_json); parameters) function["parameters"] = std::move(*parameters);
    text += dump_json(function) + "\n";
  }
  const bool laid_out = format.tools == ToolSyntax::kLaidOut;
  const ToolCall example{{}, "function_name", R"({"argument": "value"})"};
  text += "</tools>\nTo call one, write its name and its arguments ";
  text += laid_out ? "" : "as JSON ";
  text += "in this form and nothing else:\n";
  text += laid_out
              ? write_calls(format.layout, {example}) + "\n"
              : "<tool_call>\n{\"name\": \"function name\", \"arguments\": {\"argument\": \"value\"}}\n</tool_call>\n";
  if (choice.kind == ToolChoiceKind::kRequired) {
    text += "Answer with a function call.";
  } else if (choice.kind == ToolChoiceKind::kFunction) {
    text += fmt::format("Answer with a call of {}.", choice.function);
  } else {
    text += laid_out ? "" : "Results come back in <tool_response> tags. ";
    text += "Call a function only when it helps; otherwise answer as usual.";
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

void write_calls_as_content(std::vector<Message>& messages, const ReplyFormat& format) {
  if (format.tools != ToolSyntax::kLaidOut) return;
  for (Message& message : messages) {
    if (message.tool_calls.empty()) continue;
    message.content = message.content.value_or("") + write_calls(format.layout, message.tool_calls);
    message.tool_calls.clear();
  }
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
