// music/blocks/layer_sizes.h: the sizes of a transformer layer, read from the shapes of its tensors.
//
// Threads  pure functions.
// Errors   kBadModel naming the tensor that is missing or whose shape cannot be.
// Source   ace-step.md §2.4: hidden size from a norm, head size from q_norm, heads from the rows of the projections.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "weights/gguf.h"

namespace hocket {

struct LayerSizes {
  int64_t n_embd = 0, n_head = 0, n_kv_head = 0, head_dim = 0, n_ff = 0;

  // `prefix` ends with a dot; `norm` is the name of a norm of width n_embd after it.
  static Result<LayerSizes> read(const GgufFile& file, const std::string& prefix, const std::string& norm);
};

// The tensor of this name, or an Error.
Result<const TensorInfo*> require_tensor(const GgufFile& file, const std::string& name);
// All its elements as floats.
Result<std::vector<float>> read_tensor(const GgufFile& file, const TensorInfo& tensor);

}  // namespace hocket
