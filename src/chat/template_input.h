// chat/template_input.h: the variables that a template sees.
//
// Where a template lacks something, the conversation is rewritten so that nothing of it is lost: system text goes in
// front of the next user message, tool calls and results become text.
//
// Threads  pure functions.
// Errors   kInvalid naming chat_template_kwargs, tools or messages.
// Cost     linear in the conversation.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "chat/message.h"
#include "chat/template.h"

namespace hocket {

enum class ReasoningKey { kReasoningContent, kThinking };

// How a template wants its input.
struct InputStyle {
  bool system_role = true;
  bool developer_role = false;   // false: such messages are system messages
  bool tool_calls = true;        // false: calls and results become text
  bool single_calls = false;     // a message shows one call; several become messages of their own
  bool object_arguments = true;  // arguments of calls are parsed
  bool null_content = false;     // absent content is null instead of ""
  ReasoningKey reasoning_key = ReasoningKey::kReasoningContent;
  bool reasoning_excludes_content = false;  // with calls: the content goes to the end of the reasoning
};

Result<Json> template_variables(const TemplateInput& input, const InputStyle& style, const std::string& bos,
                                const std::string& eos);

// A call as text, for models whose template knows none: <tool_call>{"name": …, "arguments": …}</tool_call>.
std::string generic_call_text(const ToolCall& call);

}  // namespace hocket
