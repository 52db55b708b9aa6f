// compute/packed_matrix.h: a weight in the layout of our own kernels.
//
// A tensor that stands for one keeps its shape and type, but its data is in this layout: only matmul() and
// matmul_experts() may use it.
//
// Owns     nothing; the bytes belong to whoever set `data`.
// Threads  const after packing; pack_rows() from any thread, on ranges that do not overlap.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <optional>

#include "compute/kernels/kernel_table.h"

namespace hocket {

struct PackedMatrix {
  const KernelTable* kernels;
  PackedFormat format;
  int64_t n_in, n_out, n_expert;
  std::byte* data = nullptr;  // aligned to kPackedAlignment

  // Nothing when the type or the length of the rows has no kernel.
  static std::optional<PackedMatrix> describe(const KernelTable& kernels, ggml_type type, int64_t n_in, int64_t n_out,
                                              int64_t n_expert);

  int64_t n_groups() const;  // of an expert
  std::size_t group_size() const;
  std::size_t size() const;
  std::byte* group(int64_t expert, int64_t i) const;

  // Its rows from `row` on, a multiple of kGroupRows; not of experts.
  PackedMatrix from_row(int64_t row) const;

  // Packs groups [first, end) of all experts' groups; `rows` are all rows of the tensor as the file has them.
  void pack_groups(const std::byte* rows, int64_t first, int64_t end) const;
};

constexpr std::size_t kPackedAlignment = 64;

// Makes a tensor stand for a matrix, which must outlive it. Its buffer must be of the CPU's plain type.
void set_packed(ggml_tensor* tensor, const PackedMatrix* matrix);
// What a tensor stands for, or nullptr.
const PackedMatrix* packed_matrix(const ggml_tensor* tensor);

}  // namespace hocket
