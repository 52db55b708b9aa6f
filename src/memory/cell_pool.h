// memory/cell_pool.h: which cell of a cache holds which token of which sequences.
//
// A cell holds one position of one or more sequences (forks share cells). Cells are handed out lowest first, so that a
// step reads a short prefix of the cache. With a window, cells that no future token can see are handed out again.
//
// Owns     host metadata only; the data of a cell live in the cache's tensors.
// Threads  one user at a time.
// Errors   allocate(): kBusy when there are not enough cells; nothing changes then.
// Cost     every call O(n_cells).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "memory/sequence_memory.h"

namespace hocket {

inline constexpr std::size_t kMaxSeqs = 64;
inline constexpr int32_t kNoPosition = -1;

class CellPool {
 public:
  // window 0: every earlier token stays visible; else a token sees the `window` latest positions including its own.
  CellPool(std::size_t n_cells, std::size_t window)
      : positions_(n_cells, kNoPosition), seqs_(n_cells, 0), window_(window) {}

  std::size_t n_cells() const { return positions_.size(); }
  std::size_t window() const { return window_; }

  // Finds cells for new tokens, without taking them. lengths[s] = tokens that sequence s has now.
  Result<std::vector<uint32_t>> find(std::size_t n_tokens, std::span<const std::size_t> lengths) const;
  // Takes a cell for a token, ending whatever it held.
  void assign(uint32_t cell, SeqId seq, int32_t position);

  // Cells that can be handed out now.
  std::size_t n_free(std::span<const std::size_t> lengths) const;
  // Number of the highest cell in use, plus one.
  std::size_t used_end() const;
  // Whether a query of `seq` at `position` sees this cell.
  bool visible(uint32_t cell, SeqId seq, int32_t position) const {
    const int32_t p = positions_[cell];
    return (seqs_[cell] >> seq & 1) != 0 && p <= position &&
           (window_ == 0 || position - p < static_cast<int32_t>(window_));
  }

  // Whether everything that a token at position n would see is still here.
  bool holds_before(SeqId seq, std::size_t n) const;
  void truncate(SeqId seq, std::size_t n);
  void fork(SeqId source, SeqId target);
  // Cells of a sequence that a token at position `length` or later could see, by ascending position.
  std::vector<uint32_t> live_cells(SeqId seq, std::size_t length) const;
  int32_t position(uint32_t cell) const { return positions_[cell]; }

 private:
  bool reusable(uint32_t cell, std::span<const std::size_t> lengths) const;

  std::vector<int32_t> positions_;  // kNoPosition: empty
  std::vector<uint64_t> seqs_;      // bit s: sequence s
  std::size_t window_;
};

}  // namespace hocket
