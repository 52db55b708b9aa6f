#include "chat/tool_syntax/syntax.h"

#include <array>
#include <cctype>

#include "base/check.h"

namespace hocket {
namespace {

constexpr std::size_t kMaxName = 64;

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
}

const std::vector<SyntaxRow>& rows() {
  static const std::vector<SyntaxRow> kRows{
      {ToolSyntax::kGeneric,
       {"<tool_call>"},
       "</tool_call>",
       "<tool_call>\n{\"name\": \"",
       "\", \"arguments\": ",
       "}\n</tool_call>",
       "<tool_call>"},
      {ToolSyntax::kHermes,
       {"<tool_call>"},
       "</tool_call>",
       "<tool_call>\n{\"name\": \"",
       "\", \"arguments\": ",
       "}\n</tool_call>",
       "<tool_call>"},
      {ToolSyntax::kLlama3, {"<|python_tag|>"}, "", "{\"name\": \"", "\", \"parameters\": ", "}", ""},
      {ToolSyntax::kMistral,
       {"[TOOL_CALLS]"},
       "",
       "[TOOL_CALLS][{\"name\": \"",
       "\", \"arguments\": ",
       "}]",
       "[TOOL_CALLS]"},
      {ToolSyntax::kMistralNamed, {"[TOOL_CALLS]"}, "", "[TOOL_CALLS]", "[ARGS]", "", "[TOOL_CALLS]"},
      {ToolSyntax::kFunctionary, {"<function="}, "</function>", "<function=", ">", "</function>", "<function="},
      {ToolSyntax::kRecipient, {">>>"}, "", "", "\n", "", ""},
  };
  return kRows;
}

// `text` from `at` against a fixed piece.
enum class Match { kYes, kNo, kNeedMore };
Match match(std::string_view text, std::size_t at, std::string_view piece) {
  const std::string_view rest = text.substr(at, piece.size());
  if (rest == piece) return Match::kYes;
  return piece.substr(0, rest.size()) == rest ? Match::kNeedMore : Match::kNo;
}

}  // namespace

const SyntaxRow& syntax_row(ToolSyntax syntax) {
  for (const SyntaxRow& row : rows()) {
    if (row.syntax == syntax) return row;
  }
  CHECK(false);
  return rows().front();
}

CallHead read_call_head(ToolSyntax syntax, std::string_view text) {
  const bool mistral = syntax == ToolSyntax::kMistral || syntax == ToolSyntax::kMistralNamed;
  const CallHead none, more{CallHead::Status::kNeedMore, {}, 0};
  std::size_t at = 0;
  while (at < text.size() && at <= kMaxName && is_name_character(text[at])) ++at;
  if (at > kMaxName) return none;
  if (at == text.size()) return more;
  if (at == 0) return none;
  CallHead found{CallHead::Status::kFound, std::string(text.substr(0, at)), 0};
  if (!mistral) {
    const char end = syntax == ToolSyntax::kFunctionary ? '>' : '\n';
    if (text[at] != end) return none;
    found.n_bytes = at + 1;
    return found;
  }
  constexpr std::string_view kId = "[CALL_ID]", kArguments = "[ARGS]";
  const Match id = match(text, at, kId), arguments = match(text, at, kArguments);
  if (id == Match::kYes) {
    std::size_t end = at + kId.size();
    while (end < text.size() && end - at < 100 && is_name_character(text[end])) ++end;
    if (end == text.size()) return more;
    const Match after = match(text, end, kArguments);
    if (after == Match::kNeedMore) return more;
    if (after == Match::kNo) return none;
    found.n_bytes = end + kArguments.size();
    return found;
  }
  if (arguments == Match::kYes) {
    found.n_bytes = at + kArguments.size();
    return found;
  }
  if (id == Match::kNeedMore || arguments == Match::kNeedMore) return more;
  if (text[at] != '{') return none;
  found.n_bytes = at;
  return found;
}

}  // namespace hocket
