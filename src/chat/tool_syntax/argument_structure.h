// chat/tool_syntax/argument_structure.h: the arguments of a tool's schema as a Structure in a layout's notation.
//
// JSON and gemma's notation are the compiler's own. Tagged and Python arguments are put together here, property by
// property in the order of the schema; what has no spelling of its own (numbers, lists, objects) is JSON. A string
// between tags has no escapes: it may not contain the closing tag, with a length no "<" at all, and "format" is
// refused.
//
// Threads  pure function.
// Errors   kInvalid naming the place in the schema and the keyword; `param` is left empty.
// Cost     linear in the schema, quadratic in the optional properties for Python.
#pragma once

#include <string>

#include "base/result.h"
#include "chat/tool_syntax/call_layout.h"
#include "tokenizer/structure.h"

namespace hocket {

Result<Structure> arguments_structure(const CallLayout& layout, const std::string& schema_json);

}  // namespace hocket
