#include "tokenizer/merge_rules.h"

#include <fmt/format.h>

#include <limits>

namespace hocket {
namespace {

constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";
constexpr std::size_t kMaxMerges = 32u << 20;

uint64_t pair_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

Result<std::unique_ptr<MergeRules>> MergeRules::read(const Metadata& metadata, const Vocabulary& vocabulary) {
  TRY_ASSIGN(const std::vector<std::string>* merges, metadata.strings(kMergesKey));
  if (merges == nullptr) return Error(ErrorCode::kBadModel, "the file has no merges", std::string(kMergesKey));
  if (merges->size() > kMaxMerges) {
    return Error(ErrorCode::kBadModel, fmt::format("{} merges; at most {} are supported", merges->size(), kMaxMerges),
                 std::string(kMergesKey));
  }
  std::unique_ptr<MergeRules> rules(new MergeRules(vocabulary));
  std::size_t n_slots = 16;
  int bits = 4;
  for (; n_slots < merges->size() * 2; n_slots *= 2) ++bits;
  rules->slots_.resize(n_slots);
  rules->shift_ = 64 - bits;
  std::string merged;
  for (std::size_t rank = 0; rank < merges->size(); ++rank) {
    const std::string_view merge = (*merges)[rank];
    const std::size_t space = merge.find(' ', 1);  // the left part may itself begin with a space
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      return Error(ErrorCode::kBadModel, fmt::format("merge {} is not two texts with a space between them", rank),
                   std::string(kMergesKey));
    }
    const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
    merged.assign(left).append(right);
    rules->insert(rules->add_symbol(left), rules->add_symbol(right),
                  {static_cast<int32_t>(rank), rules->add_symbol(merged)});
  }
  return rules;
}

int32_t MergeRules::symbol(std::string_view text) const {
  if (const TokenId id = vocabulary_->find(text); id != kNoToken) return id;
  const auto found = other_symbols_.find(text);
  return found == other_symbols_.end() ? -1 : found->second;
}

std::string_view MergeRules::text(int32_t symbol) const {
  const auto index = static_cast<std::size_t>(symbol);
  return is_token(symbol) ? std::string_view(vocabulary_->texts[index])
                          : std::string_view(other_texts_[index - vocabulary_->size()]);
}

int32_t MergeRules::add_symbol(std::string_view text) {
  if (const int32_t known = symbol(text); known >= 0) return known;
  const auto number = static_cast<int32_t>(vocabulary_->size() + other_texts_.size());
  other_texts_.emplace_back(text);
  other_symbols_.emplace(other_texts_.back(), number);
  return number;
}

std::size_t MergeRules::slot_of(uint64_t pair) const {
  // Fibonacci hashing; linear probing in a table that is at most half full.
  std::size_t slot = static_cast<std::size_t>(((pair ^ (pair >> 29)) * 0x9E3779B97F4A7C15u) >> shift_);
  while (slots_[slot].pair != kFree && slots_[slot].pair != pair) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void MergeRules::insert(int32_t left, int32_t right, RankedSymbol merged) {
  Slot& slot = slots_[slot_of(pair_of(left, right))];
  if (slot.pair == kFree) slot = {pair_of(left, right), merged};  // of a repeated merge the first counts
}

RankedSymbol MergeRules::find(int32_t left, int32_t right) const {
  if (left < 0 || right < 0) return {};
  const Slot& slot = slots_[slot_of(pair_of(left, right))];
  return slot.pair == kFree ? RankedSymbol{} : slot.merged;
}

}  // namespace hocket
