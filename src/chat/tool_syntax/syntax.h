// chat/tool_syntax/syntax.h: what a format's calls look like from outside: what opens and closes them, and how the
// constraint spells them.
//
// Threads  plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/reply_format.h"
#include "chat/tool_syntax/call_layout.h"

namespace hocket {

struct CallSyntax {
  // What begins calls in the middle of text.
  std::vector<std::string> openers;
  // What ends a call after its arguments, piece by piece; any may be missing.
  std::vector<std::string> closers;
  CallSpelling spelling;
  // What switches the constraint on when calls are optional: the beginning of a spelled call; "" = nothing reliable
  // does.
  std::string trigger;
};

CallSyntax call_syntax(const ReplyFormat& format);

// After an opener that is followed by a name instead of an object: the name and the bytes up to the arguments.
struct CallHead {
  enum class Status { kNeedMore, kNone, kFound } status = Status::kNone;
  std::string name;
  std::string id;  // where the model writes one
  std::size_t n_bytes = 0;
};
// `text` begins behind the opener.
CallHead read_call_head(ToolSyntax syntax, std::string_view text);
// The same for a layout of whose lead the first n_lead_met pieces are behind.
CallHead read_layout_head(const CallLayout& layout, std::size_t n_lead_met, std::string_view text);

// `piece` at the beginning of `text`, after any space; its end. kNeedMore: the text ends too early to tell.
struct PieceMatch {
  enum class Status { kYes, kNo, kNeedMore } status = Status::kNo;
  std::size_t end = 0;
};
PieceMatch match_spaced(std::string_view text, std::size_t at, std::string_view piece);

}  // namespace hocket
