// chat/reply_format.h: how a model writes thinking and tool calls, and how to read them back while they stream.
//
// detect_reply_format() looks at the calls that the template prints, at the template and at the vocabulary, and picks
// one of the known formats: thinking tags (<think>…</think> and others), and tool-call syntax (docs/chat-templates.md
// has the table). A call is one only if it names a tool that was offered.
//
// Threads  ReplyFormat const; a ReplyParser follows one answer.
// Errors   text that breaks its own format is passed on as content, never lost and never an error.
// Cost     linear in the text.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "chat/message.h"
#include "chat/template.h"
#include "chat/tool_syntax/call_layout.h"
#include "tokenizer/grammar.h"
#include "tokenizer/tokenizer.h"

namespace hocket {

enum class ToolSyntax {
  kGeneric,       // of our own choosing, the same as kHermes: <tool_call>{"name": …, "arguments": …}</tool_call>
  kHermes,        // Hermes, Qwen
  kLlama3,        // {"name": …, "parameters": …} as the whole answer, possibly after <|python_tag|>
  kMistral,       // [TOOL_CALLS][{"name": …, "arguments": …}]
  kMistralNamed,  // [TOOL_CALLS]name[ARGS]{…}
  kFunctionary,   // <function=name>{…}</function>
  kRecipient,     // >>>name\n{…}, where >>>all\n is for the user (functionary 3.2)
  kLaidOut,       // the pieces of ReplyFormat::layout around a name and arguments
  kHarmony,       // messages on channels: <|channel|>commentary to=functions.name<|message|>{…} (gpt-oss)
};

struct ReplyFormat {
  ToolSyntax tools = ToolSyntax::kGeneric;
  CallLayout layout;           // kLaidOut
  std::string think_open;      // "<think>"; "" when the model does not think
  std::string think_close;     // "</think>"
  bool shows_special = false;  // the tags are control tokens: generate with their text visible
};

ReplyFormat detect_reply_format(const ChatTemplate& chat_template, const Tokenizer& tokenizer);

// Puts into the conversation what a template without tool definitions does not say about the tools; the calls are to be
// written as the format has them.
void add_generic_tool_prompt(std::vector<Message>& messages, const std::vector<Tool>& tools, const ToolChoice& choice,
                             const ReplyFormat& format = {});

// For templates that print no calls but whose models know a syntax: calls become content in that syntax.
void write_calls_as_content(std::vector<Message>& messages, const ReplyFormat& format);

struct ResponseFormat {
  enum class Kind { kText, kJsonObject, kJsonSchema } kind = Kind::kText;
  std::string schema_json;
};

// What the answer must follow; nullptr when it is free. `grammar` is a client's GBNF ("" = none).
// prompt_opens_thinking: the rendered prompt ends inside an open thinking block. Conflicting wishes (grammar and tools,
// …) are kInvalid.
Result<std::unique_ptr<TokenConstraint>> make_constraint(GrammarCompiler& compiler, const Tokenizer& tokenizer,
                                                         const ReplyFormat& format, const std::vector<Tool>& tools,
                                                         const ToolChoice& choice, bool parallel_tool_calls,
                                                         const ResponseFormat& response_format,
                                                         const std::string& grammar, bool prompt_opens_thinking);

// Pieces of an answer, in order.
struct ReplyDelta {
  enum class Kind { kContent, kReasoning, kToolCallStart, kToolCallArguments } kind = Kind::kContent;
  std::string text;       // content, reasoning, or the next bytes of the arguments
  std::size_t index = 0;  // which tool call
  std::string call_id;    // kToolCallStart
  std::string call_name;  // kToolCallStart
};

class ReplyParser {
 public:
  // `tools` empty: tool syntax is plain content. `starts_in_thinking`: the prompt ended inside an open thinking block.
  static std::unique_ptr<ReplyParser> create(const ReplyFormat& format, const std::vector<Tool>& tools,
                                             bool starts_in_thinking);
  virtual ~ReplyParser() = default;

  // Deltas that are certain after `text` (whole characters); may hold back a possible tag.
  virtual std::vector<ReplyDelta> push(std::string_view text) = 0;
  // What was held back.
  virtual std::vector<ReplyDelta> finish() = 0;
  virtual std::size_t n_tool_calls() const = 0;
};

// "call_" and 24 random characters.
std::string make_tool_call_id();

}  // namespace hocket
