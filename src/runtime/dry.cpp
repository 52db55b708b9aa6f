#include "runtime/dry.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hocket {
namespace {

constexpr float kLargestPenalty = std::numeric_limits<float>::max() / 4;  // logits stay finite

}  // namespace

Dry::Dry(const SamplingParams& params, const Tokenizer& tokenizer, std::size_t window)
    : tokenizer_(&tokenizer),
      multiplier_(params.dry_multiplier),
      base_(params.dry_base),
      allowed_length_(static_cast<std::size_t>(params.dry_allowed_length)),
      history_(window),
      breakers_(std::make_shared<TextAutomaton>(params.dry_sequence_breakers)) {}

void Dry::accept(TokenId id) {
  history_.push(id);
  bool broken = false;
  for (const char byte : tokenizer_->piece(id, true)) {
    breaker_state_ = breakers_->next(breaker_state_, byte);
    broken = broken || breakers_->match(breaker_state_) != TextAutomaton::kNoPattern;
  }
  since_breaker_ = broken ? 0 : since_breaker_ + 1;
}

void Dry::find_repetitions() {
  lengths_.clear();
  const std::span<const TokenId> recent = history_.recent();
  const std::size_t n = recent.size();
  const std::size_t longest = std::min(since_breaker_, n);
  if (n < 2 || longest < allowed_length_) return;

  // overlaps_[i]: how many tokens the window and the window without its last i tokens have in common at their ends.
  const auto from_end = [&](std::size_t i) { return recent[n - 1 - i]; };
  overlaps_.assign(n, 0);
  std::size_t left = 0, right = 0;  // the match [left, right) that reaches furthest
  for (std::size_t i = 1; i < n; ++i) {
    std::size_t length = i < right ? std::min<std::size_t>(right - i, overlaps_[i - left]) : 0;
    while (i + length < n && from_end(length) == from_end(i + length)) ++length;
    overlaps_[i] = static_cast<uint32_t>(length);
    if (i + length > right) {
      left = i;
      right = i + length;
    }
    const std::size_t repeated = std::min(length, longest);
    if (repeated < allowed_length_) continue;
    std::size_t& known = lengths_[from_end(i - 1)];
    known = std::max(known, repeated);
  }
}

void Dry::apply(CandidateSet& set) {
  find_repetitions();
  // Beyond this exponent base^e is no longer finite.
  const float largest_exponent = base_ > 1.000001f ? std::log(std::numeric_limits<float>::max()) / std::log(base_)
                                                   : std::numeric_limits<float>::max();
  set.change(lengths_, [&](float logit, std::size_t length) {
    const float exponent = std::min(static_cast<float>(length - allowed_length_), largest_exponent);
    return logit - std::min(multiplier_ * std::pow(base_, exponent), kLargestPenalty);
  });
}

}  // namespace hocket
