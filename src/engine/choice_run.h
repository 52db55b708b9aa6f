// engine/choice_run.h: one choice of an answer: tokens become deltas, log-probabilities and an end.
//
// Owns     the generation and the parser of the reply's format.
// Threads  one user at a time.
// Errors   advance(): those of Generation::advance().
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chat/reply_format.h"
#include "engine/reply_channel.h"
#include "engine/requests.h"
#include "runtime/generation.h"

namespace hocket {

class ChoiceRun {
 public:
  // `parser` nullptr: all text is content. Events go to `channel`.
  ChoiceRun(std::size_t index, const Tokenizer& tokenizer, Generation generation, std::unique_ptr<ReplyParser> parser,
            bool starts_in_thinking, ReplyChannel& channel);

  Result<void> advance(std::span<const float> logits);

  bool ended() const { return generation_.ended(); }
  FinishReason finish_reason() const;  // once it has ended
  TokenId last_token() const { return generation_.last_token(); }
  std::size_t n_tokens() const { return generation_.n_tokens(); }
  std::size_t n_reasoning_tokens() const { return n_reasoning_; }

 private:
  void count_reasoning(const std::vector<ReplyDelta>& deltas);
  void emit(std::vector<ReplyDelta> deltas);
  void end();

  std::size_t index_;
  const Tokenizer* tokenizer_;
  Generation generation_;
  std::unique_ptr<ReplyParser> parser_;
  ReplyChannel* channel_;
  std::vector<TokenLogprobs> logprobs_;  // of tokens whose text is still held back
  bool thinking_;
  std::size_t n_undecided_ = 0;  // tokens before the first delta
  std::size_t n_reasoning_ = 0;
};

// Log-probabilities with the bytes of their tokens.
TokenLogprobs describe_logprobs(const Tokenizer& tokenizer, const RowLogprobs& row);

}  // namespace hocket
