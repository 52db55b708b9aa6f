// runtime/speculative/draft_source.h: something that guesses how a sequence goes on, cheaper than the model does.
//
//   TRY(source.begin(n_kept));                           // a sequence starts
//   TRY_ASSIGN(Draft draft, source.propose(request));
//   … one step of the model evaluates the draft, and takes of it what it would have drawn itself …
//   TRY(source.accept(step));
//
// A guess never changes what is generated, only how many steps that takes. A source with a state of its own finds in
// begin() and accept() what of it still holds.
//
// Threads  one user at a time.
// Errors   propose(): kCancelled, what request.check says, and those of a source's own steps. After an error the source
//          may be asked again.
// Cost     of a proposed token: traits().token_cost.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace hocket {

struct DraftTraits {
  std::size_t n_max = 0;    // tokens that a draft has at most unless the user says otherwise
  double token_cost = 0;    // of one proposed token, as a part of the model's step with one token
  double acceptance = 0.5;  // how often the model takes a token, before anything is known
  bool hidden = false;      // accept() needs the model's hidden states, and is called for the chunks of the prompt too
};

struct DraftRequest {
  // All tokens of the sequence; between two begin() it only grows. The model has not evaluated the last one yet.
  std::span<const TokenId> history;
  std::size_t n_max = 0;
  float p_min = 0;  // a source that knows probabilities ends a draft before a token below this
  CancelToken cancel;
  std::function<Result<void>()> check;  // asked during long work; an error ends it (deadlines); may be empty
};

struct Draft {
  std::vector<TokenId> tokens;
  std::vector<float> p;  // of each token after the ones before it; empty when the source does not know
};

// What the model gave for one token.
struct TargetRow {
  std::span<const float> logits;  // [n_vocab]; empty for most tokens of a prompt
  std::span<const float> hidden;  // [n_embd] after the final norm; empty when the step was not asked for it
};

// A step of the model, cut to the tokens that stay in the sequence: the last token of the history and the drafts that
// were accepted after it.
struct TargetStep {
  std::size_t first_position = 0;
  std::span<const TokenId> tokens;
  std::span<const TargetRow> rows;  // one a token, valid during the call
  std::size_t n_drafted = 0;        // drafts in the step; tokens.size() − 1 of them stay
};

class DraftSource {
 public:
  virtual ~DraftSource() = default;

  virtual DraftTraits traits() const = 0;
  // A sequence starts. It has its first n_kept tokens in common with the one before; whatever else was remembered must
  // not be used for it.
  virtual Result<void> begin(std::size_t n_kept) = 0;
  // At most request.n_max tokens that may follow the history; none when there is no good guess.
  virtual Result<Draft> propose(const DraftRequest& request) = 0;
  // After each step of the model, with or without drafts; for sources that need hidden states also after each chunk of
  // a prompt, from position n_kept of begin() on.
  virtual Result<void> accept(const TargetStep&) { return {}; }
};

}  // namespace hocket
