// tests/support/packed_weights.h: random weights of a packed format, with the values that they stand for.
#pragma once

#include <ggml-backend.h>
#include <ggml.h>

#include <cstdint>
#include <random>
#include <vector>

#include "compute/kernels/pack.h"
#include "compute/packed_matrix.h"

namespace hocket::test {

inline std::vector<float> random_floats(std::mt19937& random, std::size_t n) {
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

struct PackedWeights {
  std::vector<std::byte> rows;  // as in a file
  std::vector<float> values;    // as ggml dequantises them
  std::vector<std::byte> storage;
  PackedMatrix matrix;

  PackedWeights(const KernelTable& kernels, PackedFormat format, int64_t n_in, int64_t n_out, int64_t n_expert,
                std::mt19937& random)
      : matrix(*PackedMatrix::describe(kernels, ggml_type_of(format), n_in, n_out, n_expert)) {
    const ggml_type type = ggml_type_of(format);
    const std::vector<float> floats = random_floats(random, static_cast<std::size_t>(n_in * n_out * n_expert));
    rows.resize(ggml_row_size(type, n_in) * static_cast<std::size_t>(n_out * n_expert));
    ggml_quantize_chunk(type, floats.data(), rows.data(), 0, n_out * n_expert, n_in, nullptr);
    values.resize(floats.size());
    if (type == GGML_TYPE_F32)
      values = floats;
    else
      ggml_get_type_traits(type)->to_float(rows.data(), values.data(), static_cast<int64_t>(values.size()));
    storage.resize(matrix.size() + kPackedAlignment);
    matrix.data = storage.data() + (kPackedAlignment - reinterpret_cast<uintptr_t>(storage.data()) % kPackedAlignment) %
                                       kPackedAlignment;
    matrix.pack_groups(rows.data(), 0, matrix.n_groups() * n_expert);
  }
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  float value(int64_t expert, int64_t row, int64_t k) const {
    return values[static_cast<std::size_t>((expert * matrix.n_out + row) * matrix.n_in + k)];
  }
};

inline const char* format_name(PackedFormat format) {
  return ggml_type_name(ggml_type_of(format));
}

}  // namespace hocket::test
