#include "runtime/token_history.h"

namespace hocket {

void TokenHistory::push(TokenId id) {
  // Old tokens go in bulk, so that each is moved at most once on average.
  if (ids_.size() >= 2 * capacity_) ids_.erase(ids_.begin(), ids_.end() - static_cast<std::ptrdiff_t>(capacity_));
  ids_.push_back(id);
}

std::span<const TokenId> TokenHistory::recent() const {
  const std::span<const TokenId> all(ids_);
  return all.size() > capacity_ ? all.last(capacity_) : all;
}

void Penalties::accept(TokenId id) {
  history_.push(id);
  ++counts_[id];
  const auto recent = history_.recent();
  if (recent.size() <= window_) return;
  const auto leaving = counts_.find(recent.front());
  if (--leaving->second == 0) counts_.erase(leaving);
}

void Penalties::apply(CandidateSet& set) const {
  set.change(counts_, [this](float logit, int count) {
    const float scaled = logit <= 0 ? logit * repeat_ : logit / repeat_;
    return scaled - static_cast<float>(count) * frequency_ - presence_;
  });
}

}  // namespace hocket
