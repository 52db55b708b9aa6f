// What an answer must follow: tool_choice, response_format and the client's grammar as one TokenConstraint.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "chat/reply_format.h"
#include "chat/tool_syntax/syntax.h"

namespace hocket {
namespace {

Error invalid(std::string message, std::string param) {
  return Error(ErrorCode::kInvalid, std::move(message), std::move(param));
}

// Lets a model that was not put into thinking begin to think itself: the first token may be the opening tag, and then
// everything passes until the closing one.
class MayThinkFirst : public TokenConstraint {
 public:
  MayThinkFirst(const Tokenizer& tokenizer, TokenId open, std::string close, std::unique_ptr<TokenConstraint> inner)
      : tokenizer_(&tokenizer), open_(open), close_(std::move(close)), inner_(std::move(inner)) {}

  Result<bool> allowed(std::span<uint32_t> mask) override {
    TRY_ASSIGN(const bool masked, inner_->allowed(mask));
    if (masked && at_start_) mask[static_cast<std::size_t>(open_) / 32] |= uint32_t{1} << (open_ % 32);
    return masked;
  }
  Result<void> accept(TokenId id) override {
    if (std::exchange(at_start_, false) && id == open_) {
      inner_ = constraint_after_marker(*tokenizer_, close_, std::move(inner_));
      return {};
    }
    return inner_->accept(id);
  }
  bool complete() const override { return !at_start_ && inner_->complete(); }
  std::unique_ptr<TokenConstraint> clone() const override {
    auto copy = std::make_unique<MayThinkFirst>(*tokenizer_, open_, close_, inner_->clone());
    copy->at_start_ = at_start_;
    return copy;
  }

 private:
  const Tokenizer* tokenizer_;
  TokenId open_;
  std::string close_;
  std::unique_ptr<TokenConstraint> inner_;
  bool at_start_ = true;
};

std::unique_ptr<TokenConstraint> after_thinking(const Tokenizer& tokenizer, const ReplyFormat& format,
                                                bool prompt_opens_thinking, std::unique_ptr<TokenConstraint> inner) {
  if (!inner || format.think_close.empty()) return inner;
  if (prompt_opens_thinking) return constraint_after_marker(tokenizer, format.think_close, std::move(inner));
  const auto open = tokenizer.find(format.think_open);
  if (!open) return inner;
  return std::make_unique<MayThinkFirst>(tokenizer, *open, format.think_close, std::move(inner));
}

// Names that cannot break out of the text around them.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

constexpr const char* kAnyObject = R"({"type":"object"})";

std::string schema_of(const Tool& tool) {
  return tool.parameters_json.empty() ? R"({"type":"object","properties":{}})" : tool.parameters_json;
}

Result<std::unique_ptr<TokenConstraint>> tool_constraint(GrammarCompiler& compiler, const ReplyFormat& format,
                                                         const std::vector<Tool>& tools, const ToolChoice& choice,
                                                         bool parallel_tool_calls) {
  const SyntaxRow& row = syntax_row(format.tools);
  const bool forced = choice.kind != ToolChoiceKind::kAuto;
  const bool strict = std::any_of(tools.begin(), tools.end(), [](const Tool& tool) { return tool.strict; });
  TaggedText tagged;
  tagged.at_least_one = forced;
  // A recipient is named without >>> at the beginning of the answer only.
  tagged.stop_after_first =
      !parallel_tool_calls || choice.kind == ToolChoiceKind::kFunction || format.tools == ToolSyntax::kRecipient;
  std::string_view trigger = row.trigger;
  if (trigger.empty() && !forced) {
    // Nothing marks a call before its name; the model's own habit has to do, unless a tool asks for strictness.
    if (!strict) return std::unique_ptr<TokenConstraint>();
    if (row.before.empty()) {
      return Error(ErrorCode::kUnsupported, "this model's tool calls can be strict only with tool_choice \"required\"",
                   "tools");
    }
    trigger = row.before;
  }
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const Tool& tool = tools[i];
    if (choice.kind == ToolChoiceKind::kFunction && tool.name != choice.function) continue;
    if (!is_plain_name(tool.name)) return invalid(fmt::format("tools[{}] has a name of other characters", i), "tools");
    TaggedPart part;
    part.begin = fmt::format("{}{}{}", row.before, tool.name, row.between);
    part.schema_json = schema_of(tool);
    part.end = row.after;
    const auto alone = compiler.json_schema(part.schema_json, "tools");
    if (!alone) {
      if (forced || tool.strict || alone.error().code != ErrorCode::kInvalid) {
        Error error = alone.error();
        error.message = fmt::format("parameters of tools[{}]: {}", i, error.message);
        return error;
      }
      // Free to call it or not, and no promise asked: any object will do.
      part.schema_json = kAnyObject;
    }
    tagged.parts.push_back(std::move(part));
  }
  if (tagged.parts.empty()) {
    return invalid(fmt::format("tool_choice names \"{}\", which is not among tools", choice.function), "tool_choice");
  }
  if (!trigger.empty()) {
    tagged.triggers.emplace_back(trigger);
  } else {
    for (const TaggedPart& part : tagged.parts) tagged.triggers.push_back(part.begin);
  }
  return compiler.tagged(tagged, "tools");
}

Result<std::unique_ptr<TokenConstraint>> response_constraint(GrammarCompiler& compiler, const ResponseFormat& format) {
  if (format.kind == ResponseFormat::Kind::kJsonObject) return compiler.json_object();
  return compiler.json_schema(format.schema_json, "response_format");
}

}  // namespace

Result<std::unique_ptr<TokenConstraint>> make_constraint(GrammarCompiler& compiler, const Tokenizer& tokenizer,
                                                         const ReplyFormat& format, const std::vector<Tool>& tools,
                                                         const ToolChoice& choice, bool parallel_tool_calls,
                                                         const ResponseFormat& response_format,
                                                         const std::string& grammar, bool prompt_opens_thinking) {
  const bool forced = choice.kind == ToolChoiceKind::kRequired || choice.kind == ToolChoiceKind::kFunction;
  const bool calls = !tools.empty() && choice.kind != ToolChoiceKind::kNone;
  const bool formatted = response_format.kind != ResponseFormat::Kind::kText;
  if (forced && tools.empty()) return invalid("tool_choice asks for a call, but there are no tools", "tool_choice");
  if (!grammar.empty() && formatted) return invalid("grammar and response_format exclude each other", "grammar");
  if (!grammar.empty() && calls) return invalid("grammar excludes tools, unless tool_choice is \"none\"", "grammar");
  if (formatted && calls) {
    return invalid("response_format excludes tools, unless tool_choice is \"none\"", "response_format");
  }
  std::unique_ptr<TokenConstraint> constraint;
  if (!grammar.empty()) {
    TRY_ASSIGN(constraint, compiler.gbnf(grammar, "grammar"));
  } else if (formatted) {
    TRY_ASSIGN(constraint, response_constraint(compiler, response_format));
  } else if (calls) {
    TRY_ASSIGN(constraint, tool_constraint(compiler, format, tools, choice, parallel_tool_calls));
  }
  // Optional calls sleep until their trigger; only thinking that is already open can hold a false one.
  if (calls && !forced && !prompt_opens_thinking) return constraint;
  return after_thinking(tokenizer, format, prompt_opens_thinking, std::move(constraint));
}

}  // namespace hocket
