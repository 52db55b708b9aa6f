// weights/quantize/quantize.h: a model file with its weights in other types.
//
//   TRY_ASSIGN(const QuantizePlan plan, plan_quantising(*file, options, importance));
//   TRY(write_quantised(*file, plan, importance, "small.gguf", n_threads, cancel));
//
// A plan says what becomes of each tensor before anything is written. Everything but types stays: metadata (the number
// of the file's type is set, the keys of shards go), names, shapes, order. What is left as it is is copied.
//
// Owns     a plan points into the file, which must outlive it.
// Threads  pure; writing uses n_threads of its own.
// Errors   plan: kInvalid naming the option, kBadModel, kUnsupported. Writing: kBadModel naming the tensor, kIo,
//          kCancelled; nothing is left behind then.
// Cost     some tens of MiB whatever the model's size; the file's pages are given back tensor by tensor.
// Source   ace-step.md §2.7.
#pragma once

#include <ggml.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "weights/gguf.h"
#include "weights/quantize/importance.h"
#include "weights/quantize/recipe.h"

namespace hocket {

struct QuantizeOptions {
  const Recipe* recipe = nullptr;
  std::optional<ggml_type> token_embedding;
  std::optional<ggml_type> output;  // the head, also where it is the embedding
  // Regular expressions, which match anywhere in a name; the first that matches wins over all else.
  std::vector<std::pair<std::string, ggml_type>> tensor_types;
  bool pure = false;              // the recipe's first type for everything
  bool allow_requantize = false;  // weights that are quantised already
};

struct PlannedTensor {
  const TensorInfo* from = nullptr;
  ggml_type to = GGML_TYPE_F32;
  uint64_t n_bytes = 0;
  bool fallback = false;  // rows are no whole blocks of the type that was wanted
};

struct QuantizePlan {
  Metadata metadata;
  std::vector<PlannedTensor> tensors;
  uint64_t bytes_before = 0, bytes_after = 0, n_weights = 0;
};

// `importance` may be nullptr.
Result<QuantizePlan> plan_quantising(const GgufFile& file, const QuantizeOptions& options,
                                     const ImportanceMatrix* importance);

// Before each tensor.
using QuantizeProgress = std::function<void(const PlannedTensor& tensor, std::size_t index)>;

Result<void> write_quantised(const GgufFile& file, const QuantizePlan& plan, const ImportanceMatrix* importance,
                             const std::string& path, int n_threads, const CancelToken& cancel,
                             const QuantizeProgress& progress = {});

}  // namespace hocket
