// weights/quantize/row_conversion.h: rows of a tensor in another type.
//
// Threads  pure; a call uses n_threads of its own.
// Errors   kBadModel naming the tensor for values that are not finite, or too large for the scales of the type.
// Cost     4 bytes a value beside source and result.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "weights/gguf.h"

namespace hocket {

// Whether values of this type can be read as floats.
bool reads_as_floats(ggml_type type);

// `rows` are whole rows of `tensor` in its own type; `importance` [n_in] weighs the inputs, or is empty.
Result<std::vector<std::byte>> convert_rows(const TensorInfo& tensor, std::span<const std::byte> rows, ggml_type to,
                                            std::span<const float> importance, int n_threads);

}  // namespace hocket
