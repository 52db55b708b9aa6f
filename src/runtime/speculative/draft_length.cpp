#include "runtime/speculative/draft_length.h"

#include <algorithm>

#include "base/check.h"

namespace hocket {
namespace {

constexpr double kMemory = 0.9;         // of evidence, from one draft that reached the depth to the next
constexpr double kIdleMemory = 0.97;    // of evidence, from one step without drafts to the next
constexpr double kPriorStrength = 2.0;  // drafts that the estimate before counts for

}  // namespace

DraftLength::DraftLength(std::size_t n_max, double acceptance, const DraftCosts& costs)
    : prior_(acceptance), costs_(costs), depths_(n_max) {
  CHECK(acceptance > 0 && acceptance < 1);
}

double DraftLength::acceptance(std::size_t depth) const {
  double estimate = prior_;
  for (std::size_t i = 0; i <= depth; ++i) {
    estimate = (depths_[i].n_taken + kPriorStrength * estimate) / (depths_[i].n_tried + kPriorStrength);
  }
  return estimate;
}

std::size_t DraftLength::choose() const {
  std::size_t best = 0;
  double best_rate = 1;  // a step without drafts: one token at cost 1
  double estimate = prior_, all_taken = 1, n_tokens = 1;
  for (std::size_t i = 0; i < depths_.size(); ++i) {
    estimate = (depths_[i].n_taken + kPriorStrength * estimate) / (depths_[i].n_tried + kPriorStrength);
    all_taken *= estimate;
    n_tokens += all_taken;
    const double cost =
        1 + static_cast<double>(i + 1) * (costs_.row + costs_.token) + (1 - all_taken) * costs_.rejection;
    if (n_tokens / cost > best_rate) {
      best_rate = n_tokens / cost;
      best = i + 1;
    }
  }
  return best;
}

void DraftLength::observe(std::size_t n_drafted, std::size_t n_accepted) {
  CHECK(n_accepted <= n_drafted && n_drafted <= depths_.size());
  // What comes after the first rejected token was never judged.
  for (std::size_t i = 0; i < std::min(n_drafted, n_accepted + 1); ++i) {
    depths_[i].n_tried = kMemory * depths_[i].n_tried + 1;
    depths_[i].n_taken = kMemory * depths_[i].n_taken + (i < n_accepted ? 1 : 0);
  }
}

void DraftLength::pass() {
  for (Evidence& depth : depths_) {
    depth.n_tried *= kIdleMemory;
    depth.n_taken *= kIdleMemory;
  }
}

}  // namespace hocket
