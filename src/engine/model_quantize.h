// engine/model_quantize.h: what the command line asks of the quantiser, with types by their names.
//
// Threads  each call by itself; n_threads of its own.
// Errors   kInvalid naming the flag; kUnsupported; kBadModel naming key or tensor; kIo; kCancelled.
// Cost     some tens of MiB of memory whatever the model's size.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"

namespace hocket {

struct QuantizeJob {
  std::string input, output;
  std::string recipe;  // "Q4_K_M"
  std::string importance;
  std::string token_embedding, output_tensor;
  std::vector<std::string> tensor_types;  // "PATTERN=TYPE"
  bool pure = false;
  bool allow_requantize = false;
  bool dry_run = false;  // plans, and writes nothing
  int n_threads = 0;     // 0: the physical cores
};

struct QuantizedTensor {
  std::string name, from, to;
  std::vector<int64_t> shape;  // ggml order
  uint64_t bytes_before = 0, bytes_after = 0;
  bool fallback = false;  // rows are no whole blocks of the recipe's type
};

struct QuantizeReport {
  std::vector<QuantizedTensor> tensors;
  uint64_t bytes_before = 0, bytes_after = 0, n_weights = 0;
};

// Before each tensor.
using QuantizeListener = std::function<void(const QuantizedTensor& tensor, std::size_t index, std::size_t count)>;

Result<QuantizeReport> quantize_model(const QuantizeJob& job, const QuantizeListener& listener,
                                      const CancelToken& cancel);

// "F32, F16, …, Q4_K_M, …": what `recipe` may be, and what types may be.
std::string quantize_recipes();
std::string quantize_types();

}  // namespace hocket
