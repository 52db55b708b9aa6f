// lm/language_model.h: a loaded language model: hyper-parameters, weights and its architecture.
//
// Owns     weights (or the mapping of the file they stay in).
// Threads  const after load().
// Errors   load(): kUnsupported for an architecture that is not registered (the message lists those that are),
//          kBadModel naming the missing key or tensor with the expected shape, kOutOfMemory.
// Cost     load() touches each weight at most once; with mmap and no repacking nothing is copied.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "compute/device.h"
#include "lm/runner.h"
#include "weights/gguf.h"

namespace hocket {

// Layers [first, end) of a model; end 0: to the last one. The part with layer 0 embeds tokens, the one with the last
// layer has the head.
struct LayerRange {
  std::size_t first = 0;
  std::size_t end = 0;
};

struct LoadOptions {
  std::string device;  // as --list-devices names it; "" = CPU
  bool repack = true;  // rearrange weights for faster kernels where they exist
  // Code of products on the CPU: "auto", "ggml", or one of `hocket --version`'s kernels. Our own need `repack`.
  std::string cpu_kernels = "auto";
  std::function<bool(float)> progress;  // called with 0..1; returning false cancels the load
  LayerRange layers;
  // The NextN block: left out, loaded where the file has one, or loaded alone from a file that need not have layers.
  enum class Nextn { kLeaveOut, kIfPresent, kAlone };
  Nextn nextn = Nextn::kIfPresent;
};

// What a user may want to know about a model; also of one that cannot run.
struct ModelSummary {
  std::string arch;
  std::string name;
  std::string quantisation;  // of most weights: "Q4_1"
  uint64_t n_params = 0;
  uint64_t weight_bytes = 0;
  std::size_t n_layer = 0, n_embd = 0, n_head = 0, n_kv_head = 0, n_vocab = 0, n_ctx_train = 0;
  std::string kernels;  // what computes the products: "avx512-vnni: q4_0; ggml: f32"
  std::string pooling;  // "none", "mean", "cls", "last": for embeddings
  bool nextn = false;   // has a NextN block to draft with
};

class LanguageModel {
 public:
  // `file` must outlive the model when it is mapped.
  static Result<std::unique_ptr<LanguageModel>> load(std::shared_ptr<const GgufFile> file, const LoadOptions& options);
  // Random weights for these hyper-parameters: tests and benches that need no file. The same seed gives the same model.
  static Result<std::unique_ptr<LanguageModel>> synthetic(const Metadata& metadata, uint64_t seed, int64_t n_vocab,
                                                          LayerRange layers = {});
  virtual ~LanguageModel() = default;

  virtual const ModelSummary& summary() const = 0;
  virtual std::size_t n_vocab() const = 0;  // width of a row of logits
  // Bytes for a runner with these options, without creating it.
  virtual MemoryPlan plan(const RunnerOptions& options) const = 0;
  // The same for LmRunner::create_nextn(); weights count only where the block was loaded alone. Nothing without a
  // block.
  virtual MemoryPlan plan_nextn(const RunnerOptions&) const { return {}; }
};

// Why this file can or cannot run: checks architecture, keys, tensors and shapes without reading weights.
Result<ModelSummary> inspect_model(const GgufFile& file, const LoadOptions& load = {});
Result<MemoryPlan> plan_memory(const GgufFile& file, const RunnerOptions& options, const LoadOptions& load);
Result<MemoryPlan> plan_nextn_memory(const GgufFile& file, const RunnerOptions& options, const LoadOptions& load);

std::vector<std::string> supported_architectures();

}  // namespace hocket
