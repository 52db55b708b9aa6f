#include "http/chat_messages.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace hocket {
namespace {

constexpr std::size_t kAnyLength = SIZE_MAX;  // bounded by the body

// One element of a content array.
Result<std::string> read_part(const Json& value, std::string path) {
  FieldReader part(value, std::move(path));
  const std::string type = part.string("type", 64).value_or("");
  if (part.ok() && type.empty()) part.fail("type", fmt::format("{} is missing", part.path_of("type")));
  std::string text;
  if (type == "text" || type == "input_text" || type == "output_text" || type == "refusal") {
    const std::string_view key = type == "refusal" ? "refusal" : "text";
    if (auto content = part.string(key, kAnyLength))
      text = std::move(*content);
    else
      part.fail(key, fmt::format("{} is missing", part.path_of(key)));
  } else if (type == "image_url" || type == "input_audio" || type == "file" || type == "video_url") {
    part.fail("type", fmt::format("this model takes text only, not {}", type), ErrorCode::kUnsupported);
  } else {
    part.fail("type", fmt::format("unknown kind of content \"{}\"", type));
  }
  TRY(part.check());
  return text;
}

Result<std::optional<std::string>> read_content(FieldReader& message, std::string_view key) {
  const Json* content = message.find(key);
  if (!content) return std::optional<std::string>();
  if (!content->is_array()) {
    if (!content->is_string())
      return Error(
          ErrorCode::kInvalid,
          fmt::format("{} must be a string or an array of parts, not {}", message.path_of(key), json_kind(*content)),
          message.path_of(key));
    return std::optional<std::string>(content->get<std::string>());
  }
  std::string joined;
  for (std::size_t i = 0; i < content->size(); ++i) {
    TRY_ASSIGN(const std::string text, read_part((*content)[i], indexed_path(message.path_of(key), i)));
    if (i > 0) joined += '\n';
    joined += text;
  }
  return std::optional<std::string>(std::move(joined));
}

// {"name": …, "arguments": …}; arguments are JSON text, or an object that some clients send instead.
void read_function(const Json& value, std::string path, ToolCall& call, FieldReader& owner) {
  FieldReader function(value, std::move(path));
  call.name = function.string("name", 64).value_or("");
  if (function.ok() && call.name.empty()) function.fail("name", fmt::format("{} is missing", function.path_of("name")));
  if (const Json* arguments = function.find("arguments"); arguments && arguments->is_object())
    call.arguments = dump_json(*arguments);
  else
    call.arguments = function.string("arguments", kAnyLength).value_or("");
  if (auto checked = function.check(); !checked) owner.fail(checked.error());
}

std::vector<ToolCall> read_tool_calls(FieldReader& message, const HttpLimits& limits) {
  std::vector<ToolCall> calls;
  if (const Json* array = message.array("tool_calls", limits.max_tools)) {
    for (std::size_t i = 0; i < array->size(); ++i) {
      FieldReader item((*array)[i], indexed_path(message.path_of("tool_calls"), i));
      ToolCall call;
      call.id = item.string("id", 256).value_or("");
      item.one_of("type", {"function"});
      if (const Json* function = item.object("function"))
        read_function(*function, item.path_of("function"), call, item);
      else
        item.fail("function", fmt::format("{} is missing", item.path_of("function")));
      if (auto checked = item.check(); !checked) message.fail(checked.error());
      calls.push_back(std::move(call));
    }
  }
  if (const Json* legacy = message.object("function_call")) {
    ToolCall call;
    read_function(*legacy, message.path_of("function_call"), call, message);
    calls.push_back(std::move(call));
  }
  return calls;
}

Result<Message> read_message(const Json& value, std::string path, const HttpLimits& limits) {
  FieldReader fields(value, std::move(path));
  Message message;
  message.role = fields.one_of("role", {"system", "developer", "user", "assistant", "tool", "function"}).value_or("");
  if (fields.ok() && message.role.empty()) fields.fail("role", fmt::format("{} is missing", fields.path_of("role")));
  TRY(fields.check());
  const bool from_assistant = message.role == "assistant";

  message.name = fields.string("name", 256).value_or("");
  TRY_ASSIGN(message.content, read_content(fields, "content"));
  message.tool_call_id = fields.string("tool_call_id", 256).value_or("");
  if (from_assistant) {
    message.tool_calls = read_tool_calls(fields, limits);
    const std::string reasoning = fields.string("reasoning", kAnyLength).value_or("");
    message.reasoning = fields.string("reasoning_content", kAnyLength).value_or(reasoning);
    if (!message.content) message.content = fields.string("refusal", kAnyLength);
  } else if (fields.has("tool_calls")) {
    fields.fail("tool_calls", fmt::format("{} belongs to assistant messages only", fields.path_of("tool_calls")));
  }
  // An assistant may say nothing (null), or leave it out when it calls tools.
  const bool said_null = value.contains("content") && value["content"].is_null();
  if (!message.content && !(from_assistant && (said_null || !message.tool_calls.empty())))
    fields.fail("content", fmt::format("{} is missing", fields.path_of("content")));
  if (message.role == "function") message.role = "tool";
  TRY(fields.check());
  return message;
}

bool is_tool_name(std::string_view name) {
  if (name.empty() || name.size() > 64) return false;
  for (const char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
      return false;
  return true;
}

// The object with name, description and parameters.
Result<Tool> read_tool(const Json& value, std::string path, const HttpLimits& limits) {
  FieldReader fields(value, std::move(path));
  Tool tool;
  tool.name = fields.string("name", kAnyLength).value_or("");
  if (fields.ok() && !is_tool_name(tool.name))
    fields.fail("name", fmt::format("{} must be 1 to 64 of A-Z a-z 0-9 _ -", fields.path_of("name")));
  tool.description = fields.string("description", kAnyLength).value_or("");
  tool.strict = fields.boolean("strict").value_or(false);
  if (const Json* schema = fields.object("parameters")) {
    if (json_depth(*schema) > limits.max_schema_depth)
      fields.fail("parameters", fmt::format("{} is nested deeper than {} levels", fields.path_of("parameters"),
                                            limits.max_schema_depth));
    tool.parameters_json = dump_json(*schema);
  }
  TRY(fields.check());
  return tool;
}

Result<std::vector<Tool>> read_tool_list(const Json& array, std::string_view name, bool legacy,
                                         const HttpLimits& limits) {
  std::vector<Tool> tools;
  std::size_t n_bytes = 0;
  for (std::size_t i = 0; i < array.size(); ++i) {
    const std::string path = indexed_path(name, i);
    const Json* definition = &array[i];
    std::string definition_path = path;
    FieldReader wrapper(array[i], path);
    if (!legacy) {
      if (const auto type = wrapper.string("type", 64); wrapper.ok() && type.value_or("") != "function")
        wrapper.fail("type", fmt::format("{} must be \"function\"", wrapper.path_of("type")), ErrorCode::kUnsupported);
      definition = wrapper.object("function");
      if (!definition) wrapper.fail("function", fmt::format("{} is missing", wrapper.path_of("function")));
      definition_path = wrapper.path_of("function");
    }
    TRY(wrapper.check());
    TRY_ASSIGN(Tool tool, read_tool(*definition, definition_path, limits));
    for (const Tool& other : tools)
      if (other.name == tool.name)
        return Error(ErrorCode::kInvalid, fmt::format("two tools are called \"{}\"", tool.name),
                     definition_path + ".name");
    n_bytes += tool.name.size() + tool.description.size() + tool.parameters_json.size();
    if (n_bytes > limits.max_tool_bytes)
      return Error(ErrorCode::kInvalid,
                   fmt::format("{} are larger than {} bytes together", name, limits.max_tool_bytes), std::string(name));
    tools.push_back(std::move(tool));
  }
  return tools;
}

// `key` is tool_choice or function_call.
void read_choice(FieldReader& fields, std::string_view key, ToolFields& out) {
  const bool legacy = key == "function_call";
  const Json* value = fields.find(key);
  if (!value) {
    if (!legacy && out.tools.empty()) out.choice.kind = ToolChoiceKind::kNone;
    return;
  }
  if (value->is_string()) {
    const auto word = legacy ? fields.one_of(key, {"none", "auto"}) : fields.one_of(key, {"none", "auto", "required"});
    if (word == "none") out.choice.kind = ToolChoiceKind::kNone;
    if (word == "auto") out.choice.kind = ToolChoiceKind::kAuto;
    if (word == "required") out.choice.kind = ToolChoiceKind::kRequired;
  } else if (value->is_object()) {
    FieldReader choice(*value, fields.path_of(key));
    const Json* function = value;
    if (!legacy) {
      if (const auto type = choice.string("type", 64); choice.ok() && type.value_or("") != "function")
        choice.fail("type", fmt::format("{} must be \"function\"", choice.path_of("type")), ErrorCode::kUnsupported);
      function = choice.object("function");
      if (!function) choice.fail("function", fmt::format("{} is missing", choice.path_of("function")));
    }
    if (choice.ok()) {
      FieldReader named(*function, legacy ? fields.path_of(key) : choice.path_of("function"));
      out.choice.kind = ToolChoiceKind::kFunction;
      out.choice.function = named.string("name", 64).value_or("");
      bool known = false;
      for (const Tool& tool : out.tools) known |= tool.name == out.choice.function;
      if (named.ok() && !known)
        named.fail("name", fmt::format("there is no tool \"{}\" in this request", out.choice.function));
      if (auto checked = named.check(); !checked) choice.fail(checked.error());
    }
    if (auto checked = choice.check(); !checked) fields.fail(checked.error());
  } else {
    fields.fail(key, fmt::format("{} must be a string or an object, not {}", key, json_kind(*value)));
  }
  if (out.choice.kind == ToolChoiceKind::kRequired && out.tools.empty())
    fields.fail(key, fmt::format("{} is \"required\" but the request has no tools", key));
}

}  // namespace

std::vector<Message> read_messages(FieldReader& fields, const HttpLimits& limits) {
  std::vector<Message> messages;
  const Json* array = fields.array("messages", limits.max_messages);
  if (!array || array->empty()) {
    fields.fail("messages", array ? "messages is empty" : "messages is missing");
    return messages;
  }
  for (std::size_t i = 0; i < array->size() && fields.ok(); ++i) {
    auto message = read_message((*array)[i], indexed_path(fields.path_of("messages"), i), limits);
    if (message)
      messages.push_back(std::move(*message));
    else
      fields.fail(message.error());
  }
  return messages;
}

ToolFields read_tools(FieldReader& fields, const HttpLimits& limits) {
  ToolFields out;
  const Json* tools = fields.array("tools", limits.max_tools);
  const Json* functions = fields.array("functions", limits.max_tools);
  if (tools && functions) fields.fail("functions", "tools and functions exclude each other");
  if (const Json* list = tools ? tools : functions) {
    auto read = read_tool_list(*list, tools ? "tools" : "functions", !tools, limits);
    if (read)
      out.tools = std::move(*read);
    else
      fields.fail(read.error());
  }
  if (fields.has("tool_choice") && fields.has("function_call"))
    fields.fail("function_call", "tool_choice and function_call exclude each other");
  if (!fields.ok()) return out;
  read_choice(fields, fields.has("function_call") ? "function_call" : "tool_choice", out);
  return out;
}

}  // namespace hocket
