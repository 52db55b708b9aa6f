// runtime/speculative/draft_length.h: how many tokens are worth drafting.
//
// For each depth the share of drafts that the model took, given that it took those before, is followed with
// exponential forgetting; a depth without much evidence leans on the one before it, the first on the source's prior.
// The length is the one with the most expected tokens for its cost: (1 + a₁ + a₁a₂ + …) / cost. Costs are fixed ratios
// and no measured times, so that a request takes the same steps, and rounds the same way, each time it runs.
//
// Threads  one user at a time.
// Cost     a few operations for each depth.
#pragma once

#include <cstddef>
#include <vector>

namespace hocket {

// In units of a step of the model with one token.
struct DraftCosts {
  double row = 0.4;      // each further token in the step of the model (CPU, 4-bit weights)
  double token = 0;      // proposing a token
  double rejection = 0;  // returning to the state before, when not everything was accepted
};

class DraftLength {
 public:
  // `acceptance`: the prior, in (0, 1).
  DraftLength(std::size_t n_max, double acceptance, const DraftCosts& costs);

  // 0 when drafting does not pay.
  std::size_t choose() const;
  // A draft of n_drafted tokens was evaluated.
  void observe(std::size_t n_drafted, std::size_t n_accepted);
  // A step went without drafts because choose() said so. What was learned fades, so that drafting is tried again.
  void pass();

  // The present estimate for the draft's token `depth` (from 0).
  double acceptance(std::size_t depth) const;

 private:
  struct Evidence {
    double n_tried = 0, n_taken = 0;  // faded
  };
  double prior_;
  DraftCosts costs_;
  std::vector<Evidence> depths_;  // [n_max]
};

}  // namespace hocket
