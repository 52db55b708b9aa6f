// chat/template_probe.h: finds out what a template can do by rendering small conversations.
//
// Threads  pure.
// Errors   none: a template that fails on a probe lacks what the probe asked for.
// Cost     about ten renderings, each bounded by the program's limits.
#pragma once

#include <string>

#include "chat/jinja/program.h"
#include "chat/template.h"
#include "chat/template_input.h"

namespace hocket {

struct ProbeResult {
  ChatTemplate::Capabilities capabilities;
  InputStyle style;
};

ProbeResult probe_template(const JinjaProgram& program, const std::string& source, const std::string& bos,
                           const std::string& eos);

}  // namespace hocket
