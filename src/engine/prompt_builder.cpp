#include "engine/prompt_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace hocket {
namespace {

Error invalid(std::string message, std::string field) {
  return Error(ErrorCode::kInvalid, std::move(message), std::move(field));
}

Result<void> check_messages(const ChatRequest& request) {
  static constexpr std::array<std::string_view, 5> kRoles{"system", "developer", "user", "assistant", "tool"};
  if (request.messages.empty()) return invalid("messages must not be empty", "messages");
  for (std::size_t i = 0; i < request.messages.size(); ++i) {
    const std::string& role = request.messages[i].role;
    if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
      return invalid(fmt::format("messages[{}] has an unknown role", i), "messages");
    }
  }
  if (request.continue_final_message && request.messages.back().role != "assistant") {
    return invalid("continue_final_message needs an assistant message at the end", "continue_final_message");
  }
  return {};
}

// The tools that this answer may use.
Result<std::vector<Tool>> offered_tools(const ChatRequest& request) {
  const ToolChoice& choice = request.tool_choice;
  if (choice.kind == ToolChoiceKind::kNone) return std::vector<Tool>();
  if (choice.kind == ToolChoiceKind::kRequired && request.tools.empty()) {
    return invalid("tool_choice \"required\" needs tools", "tool_choice");
  }
  if (choice.kind == ToolChoiceKind::kFunction) {
    const bool known = std::any_of(request.tools.begin(), request.tools.end(),
                                   [&](const Tool& tool) { return tool.name == choice.function; });
    if (!known) {
      return invalid(fmt::format("tool_choice names the function \"{}\", which is not among tools", choice.function),
                     "tool_choice");
    }
  }
  return request.tools;
}

std::string_view without_trailing_space(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  return last == std::string_view::npos ? std::string_view() : text.substr(0, last + 1);
}

}  // namespace

PromptBuilder::PromptBuilder(const Tokenizer& tokenizer, Result<std::unique_ptr<ChatTemplate>> chat_template,
                             std::size_t n_ctx)
    : tokenizer_(&tokenizer), template_(std::move(chat_template)), n_ctx_(n_ctx) {
  if (template_) format_ = detect_reply_format(**template_, tokenizer);
}

Result<std::string> PromptBuilder::render(const ChatRequest& request) const {
  if (!template_) {
    Error error(ErrorCode::kUnsupported, "the model's chat template cannot be used: " + template_.error().message,
                "messages");
    return error;
  }
  TRY(check_messages(request));
  TemplateInput input;
  input.messages = request.messages;
  TRY_ASSIGN(input.tools, offered_tools(request));
  // A syntax of the template's that is not understood would be told to the model in vain.
  const bool native = (*template_)->capabilities().tools && format_.tools != ToolSyntax::kGeneric;
  if (!input.tools.empty() && !native) {
    add_generic_tool_prompt(input.messages, input.tools, request.tool_choice, format_);
    input.tools.clear();
  }
  if (!(*template_)->capabilities().tool_calls && format_.tools == ToolSyntax::kLaidOut) {
    write_calls_as_content(input.messages, format_);
    input.calls_in_content = true;
  }
  input.add_generation_prompt = !request.continue_final_message;
  input.continue_final_message = request.continue_final_message;
  input.enable_thinking = request.enable_thinking;
  input.kwargs_json = request.template_kwargs_json;
  return (*template_)->render(input);
}

Result<PreparedChat> PromptBuilder::chat(const ChatRequest& request) const {
  PreparedChat out;
  TRY_ASSIGN(out.prompt.text, render(request));
  TRY_ASSIGN(out.tools, offered_tools(request));
  TRY_ASSIGN(out.prompt.ids, encode(out.prompt.text, "messages"));
  out.prompt.n_added = add_bos(out.prompt.ids);
  if (out.prompt.ids.empty()) return invalid("the template renders these messages to nothing", "messages");
  TRY(check_length(out.prompt.ids.size(), n_ctx_ - 1, "messages"));
  out.prompt.message_ends = message_ends(out.prompt.ids);
  out.opens_thinking = opens_thinking(out.prompt.text, request);
  return out;
}

bool PromptBuilder::opens_thinking(const std::string& rendered, const ChatRequest& request) const {
  if (format_.think_open.empty()) return false;
  if (request.continue_final_message) {
    // Only the text to be continued counts: other messages may mention the tags.
    const std::string& content = request.messages.back().content.value_or("");
    const std::size_t open = content.rfind(format_.think_open);
    const std::size_t close = content.rfind(format_.think_close);
    return open != std::string::npos && (close == std::string::npos || close < open);
  }
  const std::string_view open = without_trailing_space(format_.think_open);
  const std::string_view tail = without_trailing_space(rendered);
  return tail.size() >= open.size() && tail.substr(tail.size() - open.size()) == open;
}

Result<PreparedPrompt> PromptBuilder::completion(const Prompt& prompt, const std::string& suffix) const {
  PreparedPrompt out;
  const SpecialTokens& special = tokenizer_->special();
  const bool infill = !suffix.empty();
  if (infill && (special.fim_prefix == kNoToken || special.fim_suffix == kNoToken || special.fim_middle == kNoToken)) {
    return Error(ErrorCode::kUnsupported, "this model has no fill-in-the-middle tokens", "suffix");
  }
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    out.text = *text;
    if (infill) {
      // Source code may contain the text of control tokens.
      TRY_ASSIGN(out.ids, tokenizer_->encode(*text, {false, false}));
    } else {
      TRY_ASSIGN(out.ids, encode(*text, "prompt"));
    }
  } else {
    out.ids = std::get<std::vector<TokenId>>(prompt);
    TRY(check_ids(out.ids, "prompt"));
    out.text = tokenizer_->decode(out.ids);
  }
  if (infill) {
    TRY_ASSIGN(const std::vector<TokenId> after, tokenizer_->encode(suffix, {false, false}));
    out.ids.insert(out.ids.begin(), special.fim_prefix);
    out.ids.push_back(special.fim_suffix);
    out.ids.insert(out.ids.end(), after.begin(), after.end());
    out.ids.push_back(special.fim_middle);
  }
  // Token ids are taken as they are.
  if (infill || std::holds_alternative<std::string>(prompt)) out.n_added = add_bos(out.ids);
  if (out.ids.empty()) return invalid("the prompt must not be empty", "prompt");
  TRY(check_length(out.ids.size(), n_ctx_ - 1, "prompt"));
  out.message_ends = message_ends(out.ids);
  return out;
}

std::vector<std::size_t> PromptBuilder::message_ends(const std::vector<TokenId>& ids) const {
  constexpr std::size_t kMost = 2;
  std::vector<std::size_t> ends;
  for (std::size_t i = ids.size(); i-- > 0 && ends.size() < kMost;)
    if (i + 1 < ids.size() && tokenizer_->is_end_of_generation(ids[i])) ends.insert(ends.begin(), i + 1);
  return ends;
}

Result<std::vector<TokenId>> PromptBuilder::embedding(const Prompt& input) const {
  std::vector<TokenId> ids;
  if (const auto* text = std::get_if<std::string>(&input)) {
    if (text->empty()) return invalid("an input must not be empty", "input");
    TRY_ASSIGN(ids, encode(*text, "input"));
    add_bos(ids);
    const SpecialTokens& special = tokenizer_->special();
    if (special.add_eos && special.eos != kNoToken && (ids.empty() || ids.back() != special.eos)) {
      ids.push_back(special.eos);
    }
  } else {
    ids = std::get<std::vector<TokenId>>(input);
    TRY(check_ids(ids, "input"));
  }
  if (ids.empty()) return invalid("an input must not be empty", "input");
  TRY(check_length(ids.size(), n_ctx_, "input"));
  return ids;
}

Result<std::vector<TokenId>> PromptBuilder::encode(std::string_view text, const char* field) const {
  auto ids = tokenizer_->encode(text, {false, true});
  if (!ids) {
    Error error = ids.error();
    if (error.param.empty()) error.param = field;
    return error;
  }
  return ids;
}

Result<void> PromptBuilder::check_ids(const std::vector<TokenId>& ids, const char* field) const {
  for (const TokenId id : ids) {
    if (!tokenizer_->valid_id(id)) {
      return invalid(fmt::format("token {} is not in the vocabulary (ids 0…{})", id, tokenizer_->size() - 1), field);
    }
  }
  return {};
}

Result<void> PromptBuilder::check_length(std::size_t n_tokens, std::size_t n_most, const char* field) const {
  if (n_tokens <= n_most) return {};
  Error error = invalid(
      fmt::format("the prompt has {} tokens, which leaves no room in the context of {}", n_tokens, n_ctx_), field);
  error.reason = "context_length_exceeded";
  error.numbers = {{"n_prompt_tokens", static_cast<int64_t>(n_tokens)}, {"n_ctx", static_cast<int64_t>(n_ctx_)}};
  return error;
}

std::size_t PromptBuilder::add_bos(std::vector<TokenId>& ids) const {
  const SpecialTokens& special = tokenizer_->special();
  if (!special.add_bos || special.bos == kNoToken || (!ids.empty() && ids.front() == special.bos)) return 0;
  ids.insert(ids.begin(), special.bos);
  return 1;
}

}  // namespace hocket
