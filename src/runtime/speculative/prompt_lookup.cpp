#include "runtime/speculative/prompt_lookup.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace hocket {
namespace {

constexpr uint32_t kNowhere = std::numeric_limits<uint32_t>::max();

// Collisions cost a comparison, no more.
uint64_t hash_gram(std::span<const TokenId> gram) {
  uint64_t hash = 0;
  for (const TokenId id : gram) {
    hash = (hash ^ static_cast<uint32_t>(id)) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

PromptLookup::PromptLookup(const PromptLookupOptions& options) : options_(options) {
  CHECK(options.shortest > 0 && options.longest >= options.shortest && options.candidates > 0);
}

Result<void> PromptLookup::begin(std::size_t) {
  latest_.clear();
  previous_.clear();
  return {};
}

void PromptLookup::index(std::span<const TokenId> history) {
  // The n-gram at the very end is what is looked for, so it stays out for now.
  for (std::size_t end = previous_.size(); end + 1 < history.size(); ++end) {
    previous_.push_back(kNowhere);
    if (end + 1 < options_.shortest) continue;
    const auto gram = history.subspan(end + 1 - options_.shortest, options_.shortest);
    const auto [entry, added] = latest_.try_emplace(hash_gram(gram), static_cast<uint32_t>(end));
    if (!added) {
      previous_.back() = entry->second;
      entry->second = static_cast<uint32_t>(end);
    }
  }
}

uint32_t PromptLookup::longest_match(std::span<const TokenId> history) const {
  const auto found = latest_.find(hash_gram(history.last(options_.shortest)));
  uint32_t best = kNowhere;
  std::size_t best_length = options_.shortest - 1;
  uint32_t end = found == latest_.end() ? kNowhere : found->second;
  for (std::size_t i = 0; i < options_.candidates && end != kNowhere; ++i, end = previous_[end]) {
    const std::size_t most = std::min<std::size_t>(options_.longest, end + 1);
    std::size_t length = 0;
    while (length < most && history[end - length] == history[history.size() - 1 - length]) ++length;
    if (length > best_length) {
      best = end;
      best_length = length;
    }
    if (best_length == options_.longest) break;
  }
  return best;
}

Result<Draft> PromptLookup::propose(const DraftRequest& request) {
  const std::span<const TokenId> history = request.history;
  Draft draft;
  if (history.size() >= kNowhere) return draft;
  index(history);
  if (request.n_max == 0 || history.size() <= options_.shortest) return draft;
  const uint32_t end = longest_match(history);
  if (end == kNowhere) return draft;
  // A match that reaches into the end of the history goes on in the draft itself: a loop is proposed as a loop.
  for (std::size_t at = end + 1; draft.tokens.size() < request.n_max; ++at) {
    draft.tokens.push_back(at < history.size() ? history[at] : draft.tokens[at - history.size()]);
  }
  return draft;
}

}  // namespace hocket
