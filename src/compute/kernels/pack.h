// compute/kernels/pack.h: rows of ggml's formats into groups of format.h, and back.
//
// Threads  pure functions.
// Cost     pack_group(): about a third of a nanosecond a weight.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <optional>

#include "compute/kernels/format.h"

namespace hocket {

// Nothing for a type without kernels.
std::optional<PackedFormat> packed_format(ggml_type type);
ggml_type ggml_type_of(PackedFormat format);

// Packs `n_rows` ≤ 16 rows of n_in weights that lie one after the other; missing rows become zeros. n_in is a multiple
// of the type's block.
void pack_group(PackedFormat format, const std::byte* rows, int64_t n_rows, int64_t n_in, std::byte* group);

// The values of row `row` (0..15) of a group, exactly as ggml dequantises them.
void unpack_row(PackedFormat format, const std::byte* group, int64_t row, int64_t n_in, float* out);

}  // namespace hocket
