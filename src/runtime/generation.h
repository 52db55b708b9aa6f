// runtime/generation.h: one sequence's way from prompt tokens to text.
//
//   TRY(prefill(runner, seq, prompt, hooks, cancel));
//   auto row = runner.output(0);
//   while (!generation.ended()) {
//     TRY_ASSIGN(GeneratedToken token, generation.advance(row));   // token.text may be shown
//     … one step of the runner with token.id …
//   }
//
// A Generation knows sampling, constraint, stop strings, end-of-generation tokens and the token limit, and nothing of
// the runner, so that a caller may put several of them into one step.
//
// Owns     sampler, constraint, text held back. Borrows the tokenizer.
// Threads  one user at a time.
// Errors   prefill(): those of LmRunner::step(), and what a hook returns; the sequence then holds the chunks before.
//          advance(): those of the sampler and the constraint.
// Cost     advance(): one pass over the vocabulary, two with log-probabilities.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "lm/runner.h"
#include "runtime/sampling.h"
#include "runtime/stop_matcher.h"
#include "tokenizer/token_constraint.h"
#include "tokenizer/tokenizer.h"

namespace hocket {

struct PrefillHooks {
  StepOutput output = StepOutput::kLogits;
  bool every_row = false;  // rows for all tokens, not only for the last
  // After a chunk that gave rows: the runner's output(0…n_rows−1) belong to positions first_position….
  std::function<Result<void>(std::size_t first_position, std::size_t n_rows)> on_rows;
  // After each chunk, with the length of the sequence; an error ends the prefill (deadlines).
  std::function<Result<void>(std::size_t n_done)> on_progress;
};

// Evaluates tokens[length of seq …]. Chunks end at multiples of n_batch whatever was there before, so that a prompt
// that continues at such a border runs through the same steps as from an empty sequence.
Result<void> prefill(LmRunner& runner, SeqId seq, std::span<const TokenId> tokens, const PrefillHooks& hooks,
                     const CancelToken& cancel);

enum class GenerationEnd {
  kNone,
  kEndToken,    // the model said so
  kComplete,    // the constraint allows nothing more
  kStopString,  // a stop string of the client
  kLength,      // the token limit
};

struct GeneratedToken {
  TokenId id = kNoToken;
  std::string text;                     // whole characters that are certain now
  std::optional<RowLogprobs> logprobs;  // when asked for
  GenerationEnd end = GenerationEnd::kNone;
};

struct GenerationOptions {
  std::vector<std::string> stops;
  std::size_t max_tokens = 0;       // ≥ 1
  bool show_special = false;        // control tokens become their text
  std::optional<int> top_logprobs;  // log-probabilities of each token and of that many others
};

class Generation {
 public:
  // `constraint` may be nullptr. The sampler has accepted the prompt.
  Generation(const Tokenizer& tokenizer, std::unique_ptr<Sampler> sampler, std::unique_ptr<TokenConstraint> constraint,
             GenerationOptions options);

  // Draws the next token from a row of logits. Only when !ended().
  Result<GeneratedToken> advance(std::span<const float> logits);

  bool ended() const { return end_ != GenerationEnd::kNone; }
  GenerationEnd end() const { return end_; }
  std::size_t n_tokens() const { return n_tokens_; }  // drawn, the end token included
  TokenId last_token() const { return last_; }
  const std::string& stop_string() const { return stops_.matched(); }

 private:
  const Tokenizer* tokenizer_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<TokenConstraint> constraint_;
  GenerationOptions options_;
  DetokenizeStream detokenize_;
  StopMatcher stops_;
  std::size_t n_tokens_ = 0;
  TokenId last_ = kNoToken;
  GenerationEnd end_ = GenerationEnd::kNone;
};

}  // namespace hocket
