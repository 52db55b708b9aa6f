// chat/tool_syntax/call_grammar.h: the calls of a format as a Structure: as a whole answer, among free text, or instead
// of content that follows a format of its own.
//
// Threads  const after construction.
// Errors   kInvalid for a schema that cannot be written in the format's notation; `param` is left empty.
// Cost     linear in the tools.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "chat/reply_format.h"
#include "chat/tool_syntax/syntax.h"
#include "tokenizer/structure.h"

namespace hocket {

struct CallText {
  std::string name;
  Structure arguments;
};

// Arguments of a schema as the format writes them.
Result<Structure> call_arguments(const ReplyFormat& format, const std::string& schema_json);

class CallGrammar {
 public:
  // Keeps references; the calls may be filled in later.
  CallGrammar(const ReplyFormat& format, const std::vector<CallText>& calls, bool one_call);

  // Calls and nothing else, at least one.
  Structure calls() const;
  // Calls, or an answer of this content.
  Structure calls_or(const Structure& content) const;
  // Free text until something begins a call; only with has_lead().
  Structure optional_calls() const;
  // Something marks a call before anything else is written.
  bool has_trigger() const;
  // Calls begin with something, if only with what other answers begin with, too.
  bool has_lead() const;

 private:
  bool harmony() const { return format_.tools == ToolSyntax::kHarmony; }
  Structure call(const std::string& lead) const;
  Structure plain_calls() const;

  const ReplyFormat& format_;
  const std::vector<CallText>& calls_;
  const bool one_call_;
  const CallSyntax syntax_;
};

// An answer of harmony whose final message has this content; thinking comes before.
Structure harmony_content(const Structure& content);

}  // namespace hocket
