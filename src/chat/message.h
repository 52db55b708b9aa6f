// chat/message.h: a conversation and its tools, independent of any wire format.
//
// Threads  plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hocket {

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text as the model wrote it
};

struct Message {
  std::string role;  // system, developer, user, assistant, tool
  std::optional<std::string> content;
  std::string reasoning;             // assistant only: thinking shown to the template where it asks for it
  std::string name;                  // optional speaker or tool name
  std::vector<ToolCall> tool_calls;  // assistant only
  std::string tool_call_id;          // tool only
};

struct Tool {
  std::string name;
  std::string description;
  std::string parameters_json;  // JSON schema of an object, as text; "" = no parameters
  bool strict = false;
};

enum class ToolChoiceKind { kNone, kAuto, kRequired, kFunction };
struct ToolChoice {
  ToolChoiceKind kind = ToolChoiceKind::kAuto;
  std::string function;  // kFunction
};

}  // namespace hocket
