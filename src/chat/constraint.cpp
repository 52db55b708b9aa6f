// What an answer must follow: tool_choice, response_format and the client's grammar as one TokenConstraint.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "chat/reply_format.h"
#include "chat/tool_syntax/call_grammar.h"

namespace hocket {
namespace {

Error invalid(std::string message, std::string param) {
  return Error(ErrorCode::kInvalid, std::move(message), std::move(param));
}

// Lets a model that was not put into thinking begin to think itself: the answer may begin with the tokens of the
// opening tag, and then everything passes until the closing one.
class MayThinkFirst : public TokenConstraint {
 public:
  MayThinkFirst(const Tokenizer& tokenizer, std::vector<TokenId> open, std::string close,
                std::unique_ptr<TokenConstraint> inner)
      : tokenizer_(&tokenizer), open_(std::move(open)), close_(std::move(close)), inner_(std::move(inner)) {}

  Result<bool> allowed(std::span<uint32_t> mask) override {
    if (n_opened_ > 0 && n_opened_ < open_.size()) {
      std::fill(mask.begin(), mask.end(), 0u);
      allow(mask, open_[n_opened_]);
      return true;
    }
    TRY_ASSIGN(const bool masked, inner_->allowed(mask));
    if (masked && at_start_) allow(mask, open_[0]);
    return masked;
  }
  Result<void> accept(TokenId id) override {
    const bool opens = n_opened_ < open_.size() && id == open_[n_opened_];
    if (std::exchange(at_start_, false) ? opens : n_opened_ > 0 && opens) {
      if (++n_opened_ == open_.size()) inner_ = constraint_after_marker(*tokenizer_, close_, std::move(inner_));
      return {};
    }
    if (n_opened_ > 0 && n_opened_ < open_.size()) {
      return Error(ErrorCode::kInternal, "a token outside of the opening tag", "grammar");
    }
    return inner_->accept(id);
  }
  bool complete() const override {
    return !at_start_ && (n_opened_ == 0 || n_opened_ == open_.size()) && inner_->complete();
  }
  std::unique_ptr<TokenConstraint> clone() const override {
    auto copy = std::make_unique<MayThinkFirst>(*tokenizer_, open_, close_, inner_->clone());
    copy->at_start_ = at_start_;
    copy->n_opened_ = n_opened_;
    return copy;
  }

 private:
  static void allow(std::span<uint32_t> mask, TokenId id) {
    mask[static_cast<std::size_t>(id) / 32] |= uint32_t{1} << (id % 32);
  }

  const Tokenizer* tokenizer_;
  std::vector<TokenId> open_;
  std::string close_;
  std::unique_ptr<TokenConstraint> inner_;
  bool at_start_ = true;
  std::size_t n_opened_ = 0;
};

std::unique_ptr<TokenConstraint> after_thinking(const Tokenizer& tokenizer, const ReplyFormat& format,
                                                bool prompt_opens_thinking, std::unique_ptr<TokenConstraint> inner) {
  // Harmony's structure has its thinking inside.
  if (!inner || format.think_close.empty() || format.tools == ToolSyntax::kHarmony) return inner;
  if (prompt_opens_thinking) return constraint_after_marker(tokenizer, format.think_close, std::move(inner));
  auto open = tokenizer.encode(format.think_open, {false, true});
  if (!open || open->empty()) return inner;
  // A tag of ordinary text could not be told from the beginning of the answer.
  const bool one_token = open->size() == 1;
  const TokenType first = tokenizer.type(open->front());
  if (!one_token && first != TokenType::kControl && first != TokenType::kUserDefined) return inner;
  return std::make_unique<MayThinkFirst>(tokenizer, std::move(*open), format.think_close, std::move(inner));
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

struct Wish {
  GrammarCompiler& compiler;
  const ReplyFormat& format;
  const std::vector<Tool>& tools;
  const ToolChoice& choice;
  bool parallel;

  bool forced() const { return choice.kind == ToolChoiceKind::kRequired || choice.kind == ToolChoiceKind::kFunction; }
  bool strict() const {
    return std::any_of(tools.begin(), tools.end(), [](const Tool& tool) { return tool.strict; });
  }
  // Recipients are named without >>> at the beginning of the answer only, and a call of harmony ends it.
  bool one_call() const {
    return !parallel || choice.kind == ToolChoiceKind::kFunction || format.tools == ToolSyntax::kRecipient ||
           format.tools == ToolSyntax::kHarmony;
  }
};

Result<std::vector<CallText>> call_texts(const Wish& wish) {
  std::vector<CallText> out;
  for (std::size_t i = 0; i < wish.tools.size(); ++i) {
    const Tool& tool = wish.tools[i];
    if (wish.choice.kind == ToolChoiceKind::kFunction && tool.name != wish.choice.function) continue;
    if (!is_plain_name(tool.name)) return invalid(fmt::format("tools[{}] has a name of other characters", i), "tools");
    const std::string schema = schema_of(tool);
    auto arguments = call_arguments(wish.format, schema);
    Result<void> alone;
    if (arguments) {
      if (auto compiled = wish.compiler.structure(*arguments, "tools"); !compiled) alone = compiled.error();
    } else {
      alone = arguments.error();
    }
    if (!alone) {
      if (wish.forced() || tool.strict || alone.error().code != ErrorCode::kInvalid) {
        Error error = alone.error();
        error.message = fmt::format("parameters of tools[{}]: {}", i, error.message);
        error.param = "tools";
        return error;
      }
      // Free to call it or not, and no promise asked: any object will do.
      TRY_ASSIGN(arguments, call_arguments(wish.format, kAnyObject));
    }
    out.push_back({tool.name, std::move(*arguments)});
  }
  if (out.empty()) {
    return invalid(fmt::format("tool_choice names \"{}\", which is not among tools", wish.choice.function),
                   "tool_choice");
  }
  return out;
}

// What answers without a call must follow.
Structure content_structure(const ResponseFormat& response, const std::string& grammar) {
  if (!grammar.empty()) return Structure::of(Structure::Kind::kGbnf, grammar);
  return Structure::json(response.kind == ResponseFormat::Kind::kJsonObject ? kAnyObject : response.schema_json);
}

Result<std::unique_ptr<TokenConstraint>> tool_constraint(const Wish& wish, const ResponseFormat& response) {
  std::vector<CallText> calls;
  const CallGrammar grammar(wish.format, calls, wish.one_call());
  const bool formatted = response.kind != ResponseFormat::Kind::kText;
  // Where nothing marks a call before its name the model's own habit has to do, unless a tool asks for strictness.
  if (!wish.forced() && !formatted && !grammar.has_trigger()) {
    if (!wish.strict()) return std::unique_ptr<TokenConstraint>();
    if (!grammar.has_lead()) {
      return Error(ErrorCode::kUnsupported, "this model's tool calls can be strict only with tool_choice \"required\"",
                   "tools");
    }
  }
  TRY_ASSIGN(calls, call_texts(wish));
  if (wish.forced()) return wish.compiler.structure(grammar.calls(), "tools");
  if (!formatted) return wish.compiler.structure(grammar.optional_calls(), "tools");
  const Structure content = content_structure(response, {});
  // Errors of the schema are about response_format.
  TRY(wish.compiler.structure(content, "response_format"));
  return wish.compiler.structure(grammar.calls_or(content), "tools");
}

// Without tools.
Result<std::unique_ptr<TokenConstraint>> content_constraint(GrammarCompiler& compiler, const ReplyFormat& format,
                                                            const ResponseFormat& response,
                                                            const std::string& grammar) {
  if (format.tools == ToolSyntax::kHarmony) {
    const Structure content = content_structure(response, grammar);
    return compiler.structure(harmony_content(content), grammar.empty() ? "response_format" : "grammar");
  }
  if (!grammar.empty()) return compiler.gbnf(grammar, "grammar");
  if (response.kind == ResponseFormat::Kind::kJsonObject) return compiler.json_object();
  return compiler.json_schema(response.schema_json, "response_format");
}

}  // namespace

Result<std::unique_ptr<TokenConstraint>> make_constraint(GrammarCompiler& compiler, const Tokenizer& tokenizer,
                                                         const ReplyFormat& format, const std::vector<Tool>& tools,
                                                         const ToolChoice& choice, bool parallel_tool_calls,
                                                         const ResponseFormat& response_format,
                                                         const std::string& grammar, bool prompt_opens_thinking) {
  const Wish wish{compiler, format, tools, choice, parallel_tool_calls};
  const bool calls = !tools.empty() && choice.kind != ToolChoiceKind::kNone;
  const bool formatted = response_format.kind != ResponseFormat::Kind::kText;
  if (wish.forced() && tools.empty()) {
    return invalid("tool_choice asks for a call, but there are no tools", "tool_choice");
  }
  if (!grammar.empty() && formatted) return invalid("grammar and response_format exclude each other", "grammar");
  if (!grammar.empty() && calls) return invalid("grammar excludes tools, unless tool_choice is \"none\"", "grammar");
  std::unique_ptr<TokenConstraint> constraint;
  if (calls) {
    TRY_ASSIGN(constraint, tool_constraint(wish, response_format));
  } else if (formatted || !grammar.empty()) {
    TRY_ASSIGN(constraint, content_constraint(compiler, format, response_format, grammar));
  }
  return after_thinking(tokenizer, format, prompt_opens_thinking, std::move(constraint));
}

}  // namespace hocket
