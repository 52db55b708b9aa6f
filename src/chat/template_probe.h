// chat/template_probe.h: finds out what a template can do by rendering small conversations.
//
// Threads  pure.
// Errors   none: a template that fails on a probe lacks what the probe asked for.
// Cost     about a dozen renderings, each bounded by the program's limits.
#pragma once

#include <string>

#include "chat/jinja/program.h"
#include "chat/template.h"
#include "chat/template_input.h"
#include "chat/tool_syntax/call_layout.h"

namespace hocket {

struct ProbeResult {
  ChatTemplate::Capabilities capabilities;
  InputStyle style;
  std::string call_sample;  // a conversation with calls as rendered; "" when the template fails
};

// What the conversation of call_sample calls.
const CallProbe& call_probe();

ProbeResult probe_template(const JinjaProgram& program, const std::string& source, const std::string& bos,
                           const std::string& eos);

}  // namespace hocket
