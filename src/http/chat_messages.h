// http/chat_messages.h: `messages`, `tools` and `tool_choice` of the chat API.
//
// Threads  pure functions.
// Errors   stay in `fields`; params look like "messages[2].content[0].type".
#pragma once

#include <vector>

#include "engine/requests.h"
#include "http/field_reader.h"
#include "http/options.h"

namespace hocket {

// Text parts are joined with a line break. Images, audio and files are kUnsupported.
std::vector<Message> read_messages(FieldReader& fields, const HttpLimits& limits);

struct ToolFields {
  std::vector<Tool> tools;
  ToolChoice choice;
};
// Also the legacy `functions` and `function_call`.
ToolFields read_tools(FieldReader& fields, const HttpLimits& limits);

}  // namespace hocket
