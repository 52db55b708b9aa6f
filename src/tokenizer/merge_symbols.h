// tokenizer/merge_symbols.h: the greedy merge loop that BPE and SPM share.
//
// A text is a list of symbols. The adjacent pair of lowest rank (of equal ranks, the leftmost) becomes one symbol,
// until no pair has a rank. BPE's rank is the index of the merge; SPM's follows the score of the resulting token.
//
// Threads  no shared state; a MergeScratch has one user at a time.
// Cost     O(n log n) look-ups and heap steps for n symbols.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace hocket {

struct MergeSymbol {
  int32_t symbol = -1;   // as the caller numbers them; −1 for text that has no number
  uint32_t begin = 0;    // place in the text
  uint32_t n_bytes = 0;  // 0 once it was merged into its left neighbour
  int32_t left = -1;     // neighbours, −1 at the ends
  int32_t right = -1;
};

struct RankedSymbol {
  int32_t rank = -1;  // −1: the pair does not merge
  int32_t symbol = -1;
};

struct MergeScratch {
  struct Candidate {
    uint64_t order;  // rank, then place
    int32_t symbol;
    uint32_t n_bytes;  // of both: tells whether either side has changed since
    bool operator>(const Candidate& other) const { return order > other.order; }
  };
  std::vector<MergeSymbol> symbols;
  std::vector<Candidate> heap;

  void clear() { symbols.clear(); }
  void add(int32_t symbol, uint32_t begin, uint32_t n_bytes) {
    const auto index = static_cast<int32_t>(symbols.size());
    if (index > 0) symbols.back().right = index;
    symbols.push_back({symbol, begin, n_bytes, index - 1, -1});
  }
};

// `pair(left, right)` gives the rank and symbol of two MergeSymbols. Afterwards the result is the list that starts at
// symbols[0] and follows `right`.
template <class Pair>
void merge_symbols(MergeScratch& scratch, Pair&& pair) {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  const auto at = [&](int32_t index) -> MergeSymbol& { return symbols[static_cast<std::size_t>(index)]; };
  const auto candidate = [&](int32_t left, MergeScratch::Candidate& out) {
    const MergeSymbol& a = at(left);
    if (a.right < 0) return false;
    const MergeSymbol& b = at(a.right);
    const RankedSymbol merged = pair(a, b);
    if (merged.rank < 0) return false;
    out = {static_cast<uint64_t>(merged.rank) << 32 | static_cast<uint32_t>(left), merged.symbol,
           a.n_bytes + b.n_bytes};
    return true;
  };
  const auto push = [&](int32_t left) {
    MergeScratch::Candidate next;
    if (left < 0 || !candidate(left, next)) return;
    heap.push_back(next);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };

  heap.clear();
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
    MergeScratch::Candidate first;
    if (candidate(static_cast<int32_t>(i), first)) heap.push_back(first);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const MergeScratch::Candidate best = heap.back();
    heap.pop_back();
    const auto left = static_cast<int32_t>(best.order & 0xFFFFFFFFu);
    MergeSymbol& a = at(left);
    // Symbols only grow, so an equal sum means that both sides are as they were.
    if (a.n_bytes == 0 || a.right < 0 || a.n_bytes + at(a.right).n_bytes != best.n_bytes) continue;
    MergeSymbol& b = at(a.right);
    a.symbol = best.symbol;
    a.n_bytes = best.n_bytes;
    b.n_bytes = 0;
    a.right = b.right;
    if (a.right >= 0) at(a.right).left = left;
    push(a.left);
    push(left);
  }
}

}  // namespace hocket
