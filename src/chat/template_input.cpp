#include "chat/template_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace hocket {
namespace {

std::string clock_text(std::chrono::system_clock::time_point now, const char* format) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm broken_down{};
  localtime_r(&seconds, &broken_down);
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, format, &broken_down));
}

void append_paragraph(std::string& text, std::string_view more) {
  if (!text.empty() && !more.empty()) text += '\n';
  text += more;
}

// System text in front of the user message that follows it.
std::vector<Message> without_system_role(std::vector<Message> messages) {
  std::vector<Message> out;
  std::string pending;
  bool any = false;
  for (Message& message : messages) {
    if (message.role == "system") {
      append_paragraph(pending, message.content.value_or(""));
      any = true;
      continue;
    }
    if (any && message.role == "user") {
      append_paragraph(pending, message.content.value_or(""));
      message.content = std::exchange(pending, {});
      any = false;
    }
    out.push_back(std::move(message));
  }
  if (any) {
    Message rest;
    rest.role = "user";
    rest.content = std::move(pending);
    out.push_back(std::move(rest));
  }
  return out;
}

std::vector<Message> without_tool_roles(std::vector<Message> messages) {
  std::vector<Message> out;
  bool after_result = false;
  for (Message& message : messages) {
    for (const ToolCall& call : std::exchange(message.tool_calls, {})) {
      std::string text = message.content.value_or("");
      append_paragraph(text, generic_call_text(call));
      message.content = std::move(text);
    }
    const bool result = message.role == "tool";
    if (result) {
      message.role = "user";
      message.content = fmt::format("<tool_response>\n{}\n</tool_response>", message.content.value_or(""));
      message.tool_call_id.clear();
      message.name.clear();
    }
    if (result && after_result) {
      append_paragraph(*out.back().content, *message.content);
    } else {
      out.push_back(std::move(message));
    }
    after_result = result;
  }
  return out;
}

// Each call in a message of its own, with its result behind it.
std::vector<Message> with_single_calls(std::vector<Message> messages) {
  std::vector<Message> out;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    std::vector<ToolCall> calls = messages[i].tool_calls;
    if (calls.size() < 2) {
      out.push_back(std::move(messages[i]));
      continue;
    }
    std::size_t end = i + 1;
    while (end < messages.size() && messages[end].role == "tool") ++end;
    const auto results = messages.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    const auto results_end = messages.begin() + static_cast<std::ptrdiff_t>(end);
    std::vector<Message> left(std::make_move_iterator(results), std::make_move_iterator(results_end));
    Message first = std::move(messages[i]);
    for (std::size_t k = 0; k < calls.size(); ++k) {
      Message one;
      if (k == 0) {
        one = std::move(first);
      } else {
        one.role = "assistant";
      }
      one.tool_calls = {calls[k]};
      out.push_back(std::move(one));
      const auto result = std::find_if(left.begin(), left.end(), [&](const Message& message) {
        return message.tool_call_id.empty() || message.tool_call_id == calls[k].id;
      });
      if (result == left.end()) continue;
      out.push_back(std::move(*result));
      left.erase(result);
    }
    for (Message& message : left) out.push_back(std::move(message));
    i = end - 1;
  }
  return out;
}

Json call_json(const ToolCall& call, bool object_arguments) {
  Json arguments = call.arguments;
  if (object_arguments) {
    if (call.arguments.empty()) {
      arguments = Json::object();
    } else if (auto parsed = parse_json(call.arguments); parsed && parsed->is_object()) {
      arguments = std::move(*parsed);
    }
  }
  Json out = Json::object();
  if (!call.id.empty()) out["id"] = call.id;
  out["type"] = "function";
  out["function"] = Json{{"name", call.name}, {"arguments", std::move(arguments)}};
  return out;
}

Json message_json(const Message& message, const InputStyle& style) {
  Json out = Json::object();
  out["role"] = message.role;
  std::string reasoning = message.reasoning;
  const bool joined = style.reasoning_excludes_content && !message.tool_calls.empty() && !reasoning.empty();
  if (joined) append_paragraph(reasoning, message.content.value_or(""));
  if (message.content && !joined) {
    out["content"] = *message.content;
  } else {
    out["content"] = style.null_content ? Json(nullptr) : Json("");
  }
  if (!reasoning.empty()) {
    out[style.reasoning_key == ReasoningKey::kThinking ? "thinking" : "reasoning_content"] = std::move(reasoning);
  }
  if (!message.name.empty()) out["name"] = message.name;
  if (!message.tool_calls.empty()) {
    Json& calls = out["tool_calls"] = Json::array();
    for (const ToolCall& call : message.tool_calls) calls.push_back(call_json(call, style.object_arguments));
  }
  if (!message.tool_call_id.empty()) out["tool_call_id"] = message.tool_call_id;
  return out;
}

Result<Json> tools_json(const std::vector<Tool>& tools) {
  Json out = Json::array();
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const Tool& tool = tools[i];
    Json function = Json::object();
    function["name"] = tool.name;
    if (!tool.description.empty()) function["description"] = tool.description;
    if (tool.parameters_json.empty()) {
      function["parameters"] = Json{{"type", "object"}, {"properties", Json::object()}};
    } else {
      auto parameters = parse_json(tool.parameters_json);
      if (!parameters) {
        return Error(ErrorCode::kInvalid, fmt::format("parameters of tool {}: {}", i, parameters.error().message),
                     "tools");
      }
      function["parameters"] = std::move(*parameters);
    }
    out.push_back(Json{{"type", "function"}, {"function", std::move(function)}});
  }
  return out;
}

}  // namespace

std::string generic_call_text(const ToolCall& call) {
  const std::string arguments = call.arguments.empty() ? "{}" : call.arguments;
  return fmt::format("<tool_call>\n{{\"name\": {}, \"arguments\": {}}}\n</tool_call>", dump_json(call.name), arguments);
}

Result<Json> template_variables(const TemplateInput& input, const InputStyle& style, const std::string& bos,
                                const std::string& eos) {
  std::vector<Message> messages = input.messages;
  for (Message& message : messages) {
    if (message.role == "developer" && !style.developer_role) message.role = "system";
  }
  if (!style.tool_calls && !input.calls_in_content) messages = without_tool_roles(std::move(messages));
  if (style.single_calls) messages = with_single_calls(std::move(messages));
  if (!style.system_role) messages = without_system_role(std::move(messages));

  Json out = Json::object();
  Json& list = out["messages"] = Json::array();
  for (const Message& message : messages) list.push_back(message_json(message, style));
  if (!input.tools.empty()) {
    TRY_ASSIGN(out["tools"], tools_json(input.tools));
  }
  out["add_generation_prompt"] = input.add_generation_prompt;
  out["enable_thinking"] = input.enable_thinking;
  out["bos_token"] = bos;
  out["eos_token"] = eos;
  out["date_string"] = clock_text(input.now, "%d %b %Y");
  out["datetime"] = clock_text(input.now, "%b %d %Y");
  if (!input.kwargs_json.empty()) {
    auto extra = parse_json(input.kwargs_json);
    if (!extra || !extra->is_object()) {
      return Error(ErrorCode::kInvalid,
                   extra ? "chat_template_kwargs must be an object" : "chat_template_kwargs: " + extra.error().message,
                   "chat_template_kwargs");
    }
    for (auto& [key, item] : extra->items()) out[key] = item;
  }
  return out;
}

}  // namespace hocket
