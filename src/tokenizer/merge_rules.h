// tokenizer/merge_rules.h: the ranked merges of a BPE vocabulary, over numbered symbols.
//
// A symbol's number is its token id; texts that occur in merges but are no tokens get the numbers after the vocabulary.
//
// Owns     a hash table of pairs and the texts that are no tokens.
// Threads  const after read().
// Errors   kBadModel naming tokenizer.ggml.merges.
// Cost     find(): one probe as a rule. 32 bytes or so a merge.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "tokenizer/merge_symbols.h"
#include "tokenizer/vocabulary.h"
#include "weights/metadata.h"

namespace hocket {

class MergeRules {
 public:
  // `vocabulary` must outlive the object.
  static Result<std::unique_ptr<MergeRules>> read(const Metadata& metadata, const Vocabulary& vocabulary);

  // −1 for a text that is neither a token nor part of a merge.
  int32_t symbol(std::string_view text) const;
  bool is_token(int32_t symbol) const { return symbol >= 0 && static_cast<std::size_t>(symbol) < vocabulary_->size(); }
  // symbol ≥ 0
  std::string_view text(int32_t symbol) const;
  RankedSymbol find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    uint64_t pair = kFree;
    RankedSymbol merged;
  };
  static constexpr uint64_t kFree = ~uint64_t{0};

  explicit MergeRules(const Vocabulary& vocabulary) : vocabulary_(&vocabulary) {}
  int32_t add_symbol(std::string_view text);
  void insert(int32_t left, int32_t right, RankedSymbol merged);
  std::size_t slot_of(uint64_t pair) const;

  const Vocabulary* vocabulary_;
  std::deque<std::string> other_texts_;  // a deque: the map's keys point into it
  std::unordered_map<std::string_view, int32_t> other_symbols_;
  std::vector<Slot> slots_;  // open addressing, a power of two
  int shift_ = 64;
};

}  // namespace hocket
