// chat/tool_syntax/call_writer.h: calls as text in a layout.
//
// Threads  pure function.
// Errors   none: arguments that are no JSON object are written as they are.
// Cost     linear in the arguments.
#pragma once

#include <string>
#include <vector>

#include "chat/message.h"
#include "chat/tool_syntax/call_layout.h"

namespace hocket {

std::string write_calls(const CallLayout& layout, const std::vector<ToolCall>& calls);

}  // namespace hocket
