// compute/kernels/attention.h: softmax(scale · q·kᵀ + mask) · v for rows of queries that read the same head of the
// cache; with a softcap the scores are softcap · tanh(scale · q·kᵀ / softcap) before the mask.
//
// Scores are taken of all cells first, then their largest, then the sums over cells, one after the other in the order
// in which they are listed. A masked cell adds exactly nothing, so that a row's bits depend on the cells that it sees
// and on their order alone. Every instruction set does the same operations.
//
// Threads  pure functions; each thread has its own scratch.
// Source   softmax as in Vaswani et al. 2017, §3.2.1; exp() by the polynomial of Cephes' expf.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hocket {

enum class CellType : uint8_t { kF32, kF16, kBF16 };

constexpr int64_t kAttentionRows = 32;   // at most
constexpr int64_t kAttentionCells = 64;  // converted to float at a time
constexpr uint16_t kMasked = 0xFC00;     // in a mask: −∞ in half precision

struct CellHead {
  const std::byte* data;  // of cell 0
  int64_t stride;         // bytes from cell to cell
  int64_t dim;
  CellType type;
};

struct AttentionRows {
  CellHead k, v;
  const int32_t* cells;  // [n_cells]: which to read, in this order; nullptr: the first n_cells
  int64_t n_cells;
  int64_t n_rows;
  const float* q[kAttentionRows];        // [k.dim]
  const uint16_t* mask[kAttentionRows];  // f16 [n_cells], and −∞ up to padded_cells(n_cells)
  float* out[kAttentionRows];            // [v.dim]
  const float* sink[kAttentionRows];     // a score without a value, or nullptr
  float scale;
  float softcap;   // 0: none
  float* scratch;  // attention_scratch() floats, aligned to 64 bytes
};

constexpr int64_t padded_dim(int64_t n) {
  return (n + 15) / 16 * 16;
}

constexpr int64_t padded_cells(int64_t n) {
  return (n + kAttentionCells - 1) / kAttentionCells * kAttentionCells;
}

constexpr int64_t attention_scratch(int64_t dim_k, int64_t dim_v, int64_t n_cells) {
  const int64_t k = padded_dim(dim_k), v = padded_dim(dim_v);
  return kAttentionCells * (k > v ? k : v) + kAttentionRows * (k + v + padded_cells(n_cells));
}

using AttendRows = void (*)(const AttentionRows& rows);

}  // namespace hocket
