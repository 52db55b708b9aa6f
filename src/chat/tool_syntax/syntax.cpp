#include "chat/tool_syntax/syntax.h"

#include <cctype>

#include "chat/tool_syntax/json_scanner.h"

namespace hocket {
namespace {

constexpr std::size_t kMaxName = 64;
constexpr std::string_view kNumberedPrefix = "functions.";

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
}

CallSyntax object_in_tags() {
  CallSyntax out{{"<tool_call>"}, {"</tool_call>"}, {}, "<tool_call>"};
  out.spelling.lead = "<tool_call>\n{\"name\": \"";
  out.spelling.name_close = "\", \"arguments\": ";
  out.spelling.trail = "}\n</tool_call>";
  return out;
}

CallSyntax mistral(bool named) {
  CallSyntax out{{"[TOOL_CALLS]"}, {}, {}, "[TOOL_CALLS]"};
  CallSpelling& s = out.spelling;
  if (named) {
    s.lead = "[TOOL_CALLS]";
    s.name_close = "[ARGS]";
    return out;
  }
  s.shared_lead = "[TOOL_CALLS][";
  s.lead = "{\"name\": \"";
  s.name_close = "\", \"arguments\": ";
  s.trail = "}";
  s.separator = ", ";
  s.shared_trail = "]";
  return out;
}

CallSyntax laid_out(const CallLayout& layout) {
  CallSyntax out;
  for (const std::string& piece : layout.lead) {
    // A model may leave the first ones out; but a bracket or a word opens nothing.
    if (piece.size() > 3 && piece[0] == '<') out.openers.push_back(piece);
  }
  out.closers = layout.trail;
  out.spelling = layout.spelling;
  out.trigger = layout.lead[0];
  return out;
}

// `text` from `at` against a fixed piece.
enum class Match { kYes, kNo, kNeedMore };
Match match(std::string_view text, std::size_t at, std::string_view piece) {
  const std::string_view rest = text.substr(at, piece.size());
  if (rest == piece) return Match::kYes;
  return piece.substr(0, rest.size()) == rest ? Match::kNeedMore : Match::kNo;
}

}  // namespace

CallSyntax call_syntax(const ReplyFormat& format) {
  CallSyntax out;
  switch (format.tools) {
    case ToolSyntax::kGeneric:
    case ToolSyntax::kHermes:
      return object_in_tags();
    case ToolSyntax::kLlama3:
      out.openers = {"<|python_tag|>"};
      out.spelling.lead = "{\"name\": \"";
      out.spelling.name_close = "\", \"parameters\": ";
      out.spelling.trail = "}";
      return out;
    case ToolSyntax::kMistral:
      return mistral(false);
    case ToolSyntax::kMistralNamed:
      return mistral(true);
    case ToolSyntax::kFunctionary:
      out = {{"<function="}, {"</function>"}, {}, "<function="};
      out.spelling.lead = "<function=";
      out.spelling.name_close = ">";
      out.spelling.trail = "</function>";
      return out;
    case ToolSyntax::kRecipient:
      out.openers = {">>>"};
      out.spelling.name_close = "\n";
      return out;
    case ToolSyntax::kLaidOut:
      return laid_out(format.layout);
    case ToolSyntax::kHarmony:
      out.spelling.lead = "<|channel|>commentary to=functions.";
      out.spelling.name_close = " <|constrain|>json<|message|>";
      out.spelling.trail = "<|call|>";
      return out;
  }
  return out;
}

PieceMatch match_spaced(std::string_view text, std::size_t at, std::string_view piece) {
  while (at < text.size() && is_json_space(text[at])) ++at;
  switch (match(text, at, piece)) {
    case Match::kYes:
      return {PieceMatch::Status::kYes, at + piece.size()};
    case Match::kNeedMore:
      return {PieceMatch::Status::kNeedMore, at};
    case Match::kNo:
      return {PieceMatch::Status::kNo, at};
  }
  return {};
}

CallHead read_layout_head(const CallLayout& layout, std::size_t n_lead_met, std::string_view text) {
  const CallHead none, more{CallHead::Status::kNeedMore, {}, {}, 0};
  std::size_t at = 0;
  for (std::size_t i = n_lead_met; i < layout.lead.size(); ++i) {
    const PieceMatch lead = match_spaced(text, at, layout.lead[i]);
    if (lead.status != PieceMatch::Status::kYes) return lead.status == PieceMatch::Status::kNo ? none : more;
    at = lead.end;
  }
  while (at < text.size() && is_json_space(text[at])) ++at;
  const std::size_t begin = at;
  while (at < text.size() && at - begin <= kMaxName + kNumberedPrefix.size() && is_name_character(text[at])) ++at;
  CallHead found{CallHead::Status::kFound, std::string(text.substr(begin, at - begin)), {}, 0};
  if (layout.numbered) {
    const bool counted = at < text.size() && text[at] == ':';
    if (counted) ++at;
    while (counted && at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) ++at;
    found.id = std::string(text.substr(begin, at - begin));
    if (found.name.starts_with(kNumberedPrefix)) found.name.erase(0, kNumberedPrefix.size());
  }
  if (at == text.size()) return more;
  if (found.name.empty() || found.name.size() > kMaxName) return none;
  for (const std::string& piece : layout.name_close) {
    const PieceMatch close = match_spaced(text, at, piece);
    if (close.status != PieceMatch::Status::kYes) return close.status == PieceMatch::Status::kNo ? none : more;
    at = close.end;
  }
  found.n_bytes = at;
  return found;
}

CallHead read_call_head(ToolSyntax syntax, std::string_view text) {
  const bool mistral = syntax == ToolSyntax::kMistral || syntax == ToolSyntax::kMistralNamed;
  const CallHead none, more{CallHead::Status::kNeedMore, {}, {}, 0};
  std::size_t at = 0;
  while (at < text.size() && at <= kMaxName && is_name_character(text[at])) ++at;
  if (at > kMaxName) return none;
  if (at == text.size()) return more;
  if (at == 0) return none;
  CallHead found{CallHead::Status::kFound, std::string(text.substr(0, at)), {}, 0};
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
