// engine/prompt_builder.h: from a request to the tokens that the model sees.
//
// Owns     the chat template and what is known of the reply's format. Borrows the tokenizer.
// Threads  const after construction; every method from any thread.
// Errors   kInvalid naming the request's field; a prompt that leaves no room to answer has reason
//          "context_length_exceeded" and the numbers n_prompt_tokens and n_ctx; kUnsupported for a suffix without
//          fill-in-the-middle tokens, or a template of the file that cannot be used.
// Cost     rendering and tokenising, linear in the text.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/reply_format.h"
#include "chat/template.h"
#include "engine/requests.h"
#include "tokenizer/tokenizer.h"

namespace hocket {

struct PreparedPrompt {
  std::vector<TokenId> ids;
  std::size_t n_added = 0;  // leading tokens that the client did not write (BOS)
  // Where its last messages end: after tokens that end a generation. At most two, ascending.
  std::vector<std::size_t> message_ends;
  std::string text;  // as the client wrote it, for echo
};

struct PreparedChat {
  PreparedPrompt prompt;
  std::vector<Tool> tools;  // those that the answer may call
  bool opens_thinking = false;
};

class PromptBuilder {
 public:
  // An error as template makes chat requests fail with it; text completion still works.
  PromptBuilder(const Tokenizer& tokenizer, Result<std::unique_ptr<ChatTemplate>> chat_template, std::size_t n_ctx);

  Result<std::string> render(const ChatRequest& request) const;
  Result<PreparedChat> chat(const ChatRequest& request) const;
  Result<PreparedPrompt> completion(const Prompt& prompt, const std::string& suffix) const;
  // With BOS and EOS as the vocabulary asks.
  Result<std::vector<TokenId>> embedding(const Prompt& input) const;

  const ReplyFormat& format() const { return format_; }
  const ChatTemplate* chat_template() const { return template_.ok() ? template_.value().get() : nullptr; }

 private:
  Result<std::vector<TokenId>> encode(std::string_view text, const char* field) const;
  Result<void> check_ids(const std::vector<TokenId>& ids, const char* field) const;
  Result<void> check_length(std::size_t n_tokens, std::size_t n_most, const char* field) const;
  std::vector<std::size_t> message_ends(const std::vector<TokenId>& ids) const;
  // Puts BOS in front when the vocabulary wants one and the tokens do not begin with it; the number of tokens added.
  std::size_t add_bos(std::vector<TokenId>& ids) const;
  bool opens_thinking(const std::string& rendered, const ChatRequest& request) const;

  const Tokenizer* tokenizer_;
  Result<std::unique_ptr<ChatTemplate>> template_;
  ReplyFormat format_;
  std::size_t n_ctx_;
};

}  // namespace hocket
