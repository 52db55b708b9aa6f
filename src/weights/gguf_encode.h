// weights/gguf_encode.h: the header of a GGUF file as bytes.
//
// Errors   kInvalid naming the key.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "weights/gguf.h"
#include "weights/metadata.h"

namespace hocket {

// Everything before the data, without the padding. offset_bytes of the tensors is taken relative to the data.
Result<std::vector<std::byte>> encode_gguf_header(const Metadata& metadata, const std::vector<TensorInfo>& tensors);

}  // namespace hocket
