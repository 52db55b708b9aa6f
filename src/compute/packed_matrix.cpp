#include "compute/packed_matrix.h"

#include <ggml-backend.h>

#include <algorithm>

#include "compute/kernels/pack.h"

namespace hocket {

std::optional<PackedMatrix> PackedMatrix::describe(const KernelTable& kernels, ggml_type type, int64_t n_in,
                                                   int64_t n_out, int64_t n_expert) {
  const std::optional<PackedFormat> format = packed_format(type);
  if (!format || n_in % record_of(layout_of(*format).scales).block != 0 || n_in == 0 || n_out == 0) return std::nullopt;
  return PackedMatrix{&kernels, *format, n_in, n_out, n_expert};
}

int64_t PackedMatrix::n_groups() const {
  return (n_out + kGroupRows - 1) / kGroupRows;
}

std::size_t PackedMatrix::group_size() const {
  return static_cast<std::size_t>(group_bytes(layout_of(format), n_in));
}

std::size_t PackedMatrix::size() const {
  return group_size() * static_cast<std::size_t>(n_groups() * n_expert);
}

std::byte* PackedMatrix::group(int64_t expert, int64_t i) const {
  return data + group_size() * static_cast<std::size_t>(expert * n_groups() + i);
}

PackedMatrix PackedMatrix::from_row(int64_t row) const {
  PackedMatrix part = *this;
  part.n_out -= row;
  if (data) part.data = group(0, row / kGroupRows);  // one that is only declared has none
  return part;
}

void PackedMatrix::pack_groups(const std::byte* rows, int64_t first, int64_t end) const {
  const std::size_t row_size = ggml_row_size(ggml_type_of(format), n_in);
  for (int64_t i = first; i < end; ++i) {
    const int64_t expert = i / n_groups(), row = i % n_groups() * kGroupRows;
    pack_group(format, rows + row_size * static_cast<std::size_t>(expert * n_out + row),
               std::min(kGroupRows, n_out - row), n_in, group(expert, i % n_groups()));
  }
}

void set_packed(ggml_tensor* tensor, const PackedMatrix* matrix) {
  tensor->extra = const_cast<PackedMatrix*>(matrix);
}

// Other buffers' types use `extra` for themselves; the plain type of the CPU does not.
const PackedMatrix* packed_matrix(const ggml_tensor* tensor) {
  if (!tensor->extra || !tensor->buffer ||
      ggml_backend_buffer_get_type(tensor->buffer) != ggml_backend_cpu_buffer_type())
    return nullptr;
  return static_cast<const PackedMatrix*>(tensor->extra);
}

}  // namespace hocket
