#include "memory/cell_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace hocket {

bool CellPool::reusable(uint32_t cell, std::span<const std::size_t> lengths) const {
  if (positions_[cell] == kNoPosition) return true;
  if (window_ == 0) return false;
  // The next token of a sequence stands at its length; it and all later ones must be unable to see this cell.
  for (uint64_t seqs = seqs_[cell]; seqs != 0; seqs &= seqs - 1) {
    const auto seq = static_cast<std::size_t>(std::countr_zero(seqs));
    if (lengths[seq] < static_cast<std::size_t>(positions_[cell]) + window_) return false;
  }
  return true;
}

Result<std::vector<uint32_t>> CellPool::find(std::size_t n_tokens, std::span<const std::size_t> lengths) const {
  std::vector<uint32_t> cells;
  cells.reserve(n_tokens);
  for (const bool want_empty : {true, false}) {
    for (uint32_t cell = 0; cell < positions_.size() && cells.size() < n_tokens; ++cell)
      if ((positions_[cell] == kNoPosition) == want_empty && (want_empty || reusable(cell, lengths)))
        cells.push_back(cell);
    if (window_ == 0) break;
  }
  if (cells.size() < n_tokens)
    return Error(ErrorCode::kBusy,
                 fmt::format("the cache of {} cells has no room for {} more tokens", n_cells(), n_tokens));
  return cells;
}

void CellPool::assign(uint32_t cell, SeqId seq, int32_t position) {
  positions_[cell] = position;
  seqs_[cell] = 1ull << seq;
}

std::size_t CellPool::n_free(std::span<const std::size_t> lengths) const {
  std::size_t n = 0;
  for (uint32_t cell = 0; cell < positions_.size(); ++cell) n += reusable(cell, lengths) ? 1 : 0;
  return n;
}

std::size_t CellPool::used_end() const {
  std::size_t end = positions_.size();
  while (end > 0 && positions_[end - 1] == kNoPosition) --end;
  return end;
}

bool CellPool::holds_before(SeqId seq, std::size_t n) const {
  const std::size_t first = window_ == 0 || n < window_ ? 0 : n - window_ + 1;
  std::size_t found = 0;
  for (uint32_t cell = 0; cell < positions_.size(); ++cell) {
    const int32_t p = positions_[cell];
    if (p != kNoPosition && (seqs_[cell] >> seq & 1) != 0 && static_cast<std::size_t>(p) >= first &&
        static_cast<std::size_t>(p) < n)
      ++found;
  }
  return found == n - first;
}

void CellPool::truncate(SeqId seq, std::size_t n) {
  const uint64_t bit = 1ull << seq;
  for (uint32_t cell = 0; cell < positions_.size(); ++cell) {
    if ((seqs_[cell] & bit) == 0 || static_cast<std::size_t>(positions_[cell]) < n) continue;
    seqs_[cell] &= ~bit;
    if (seqs_[cell] == 0) positions_[cell] = kNoPosition;
  }
}

void CellPool::fork(SeqId source, SeqId target) {
  for (uint64_t& seqs : seqs_)
    if ((seqs >> source & 1) != 0) seqs |= 1ull << target;
}

std::vector<uint32_t> CellPool::live_cells(SeqId seq, std::size_t length) const {
  std::vector<uint32_t> cells;
  for (uint32_t cell = 0; cell < positions_.size(); ++cell)
    if ((seqs_[cell] >> seq & 1) != 0 &&
        (window_ == 0 || static_cast<std::size_t>(positions_[cell]) + window_ > length))
      cells.push_back(cell);
  std::sort(cells.begin(), cells.end(), [&](uint32_t a, uint32_t b) { return positions_[a] < positions_[b]; });
  return cells;
}

}  // namespace hocket
