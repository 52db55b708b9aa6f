// runtime/speculative/draft_model.h: drafts from a second, smaller model with the same vocabulary.
//
// Proposes the model's most probable token, then the one after it, and so on, until one is less probable than p_min or
// ends the text. The model follows the history by itself: it keeps what its sequence has in common with it.
//
// Owns     the record of its sequence. Borrows the runner.
// Threads  one user at a time.
// Errors   propose(): those of the runner's steps. check_same_vocabulary(): kInvalid naming "draft-model".
// Cost     propose(): a step for the tokens that are new, and one for each proposed token after the first.
#pragma once

#include <vector>

#include "lm/runner.h"
#include "runtime/speculative/draft_source.h"

namespace hocket {

struct DraftModelOptions {
  double token_cost = 0;      // of DraftTraits: about the ratio of the models' sizes
  std::size_t n_vocab = 0;    // only ids below this are proposed; at most the width of the model's rows
  std::vector<TokenId> ends;  // nothing is proposed after these
};

class DraftModel final : public DraftSource {
 public:
  static constexpr std::size_t kLongest = 3;  // draft, unless the user says otherwise
  // Uses sequence `seq` of the runner, which must have room there for histories as long as the target's.
  DraftModel(LmRunner& runner, DraftModelOptions options, SeqId seq = 0);

  DraftTraits traits() const override {
    return {.n_max = kLongest, .token_cost = options_.token_cost, .acceptance = 0.7};
  }
  // Keeps whole chunks of a prompt only, so that the same prompt goes through the same steps each time and drafts do
  // not depend on what was asked before.
  Result<void> begin(std::size_t n_kept) override;
  Result<Draft> propose(const DraftRequest& request) override;

 private:
  // Brings the sequence to hold exactly `history`, with the logits of its last token in the runner.
  Result<void> follow(const DraftRequest& request);
  // The most probable token of the runner's row, and its probability.
  std::pair<TokenId, float> best() const;

  LmRunner* runner_;
  DraftModelOptions options_;
  SeqId seq_;
  std::vector<TokenId> tokens_;  // of the sequence
};

// Whether ids mean the same to both. Vocabularies may differ in length where the longer one has only unused tokens.
Result<void> check_same_vocabulary(const Tokenizer& target, const Tokenizer& draft);

}  // namespace hocket
