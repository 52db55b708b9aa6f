// runtime/speculative/nextn_drafts.h: drafts from the model's own NextN block (multi-token prediction).
//
// The block sees every token of the sequence with the model's hidden state of the token before it, and guesses the
// token after; for longer drafts it goes on from its own hidden state. It therefore follows the prompt too: accept() is
// called for its chunks. What it evaluated while guessing is replaced as soon as the model's own states are known.
//
// Owns     the hidden states that later evaluation may start from: of the last token, and at ends of whole chunks.
//          Borrows the block's runner and uses one sequence of it.
// Threads  one user at a time.
// Errors   those of the block's steps.
// Cost     propose(): a step of the block for each token. accept(): one for the accepted tokens, if any.
// Source   language-models.md §§5.2, 5.3.
#pragma once

#include <map>
#include <vector>

#include "lm/runner.h"
#include "runtime/speculative/draft_source.h"

namespace hocket {

struct NextnDraftOptions {
  double token_cost = 0;      // of DraftTraits: the block's and the head's part of the model
  std::size_t n_embd = 0;     // width of hidden states
  std::size_t n_vocab = 0;    // only ids below this are proposed
  std::vector<TokenId> ends;  // nothing is proposed after these
  std::size_t n_chunk = 0;    // later sequences may begin at multiples of this; 0: the runner's n_batch
};

class NextnDrafts final : public DraftSource {
 public:
  static constexpr std::size_t kLongest = 3;  // draft, unless the user says otherwise
  // `runner` comes from LmRunner::create_nextn(), with room for as many tokens as the model's.
  NextnDrafts(LmRunner& runner, NextnDraftOptions options, SeqId seq = 0);

  DraftTraits traits() const override {
    return {.n_max = kLongest, .token_cost = options_.token_cost, .acceptance = 0.7, .hidden = true};
  }
  Result<void> begin(std::size_t n_kept) override;
  Result<Draft> propose(const DraftRequest& request) override;
  Result<void> accept(const TargetStep& step) override;

 private:
  std::size_t length() const { return runner_->memory().length(seq_); }

  LmRunner* runner_;
  NextnDraftOptions options_;
  SeqId seq_;
  std::vector<float> pending_;                       // hidden state of the last token that the block may build on
  std::map<std::size_t, std::vector<float>> marks_;  // the same by length: where a later sequence may begin
  bool lost_ = false;        // the sequence began where no hidden state is known: no drafts in it
  bool generating_ = false;  // something was proposed in this sequence
  std::size_t true_ = 0;     // the block's first tokens that were evaluated with the model's own states
};

}  // namespace hocket
