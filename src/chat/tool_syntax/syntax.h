// chat/tool_syntax/syntax.h: one row for each way of writing tool calls.
//
// Threads  constant data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/reply_format.h"

namespace hocket {

struct SyntaxRow {
  ToolSyntax syntax;
  // What begins calls in the middle of text.
  std::vector<std::string_view> openers;
  // What ends a call after its JSON; may be missing.
  std::string_view closer;
  // A constrained call: before + name + between, JSON of the arguments, after.
  std::string_view before, between, after;
  // What switches the constraint on when calls are optional; "" = nothing reliable does.
  std::string_view trigger;
};

const SyntaxRow& syntax_row(ToolSyntax syntax);

// After an opener that is followed by a name instead of an object: the name and the bytes up to the arguments.
struct CallHead {
  enum class Status { kNeedMore, kNone, kFound } status = Status::kNone;
  std::string name;
  std::size_t n_bytes = 0;
};
// `text` begins behind the opener.
CallHead read_call_head(ToolSyntax syntax, std::string_view text);

}  // namespace hocket
