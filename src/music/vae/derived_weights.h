// music/vae/derived_weights.h: F32 weights that are computed from a file's tensors when they are loaded.
//
// Declared like a WeightSet: the first defect is kept and every later call still works, so that network code needs no
// error handling.
//
// Owns     the tensors and their buffer; keeps the file open.
// Threads  declarations by one user; const after load().
// Errors   kBadModel naming the tensor with the expected shape; kOutOfMemory and kIo from load().
// Cost     load() reads each tensor once and holds one of them at a time.
#pragma once

#include <ggml-backend.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "compute/graph.h"
#include "music/blocks/network_graph.h"
#include "weights/gguf.h"
#include "weights/weight_source.h"

namespace hocket {

class DerivedWeights {
 public:
  DerivedWeights(std::shared_ptr<const GgufFile> file, const MusicCompute& compute);
  ~DerivedWeights();
  DerivedWeights(const DerivedWeights&) = delete;
  DerivedWeights& operator=(const DerivedWeights&) = delete;

  // The file's tensors, as floats.
  using Sources = std::vector<std::vector<float>>;
  using Derive = std::function<std::vector<float>(const Sources&)>;
  struct Source {
    std::string name;
    Shape shape;
  };
  // A tensor of `shape` whose values `derive` makes of the sources.
  Tensor declare(const Shape& shape, std::vector<Source> sources, Derive derive);
  // The shape of a tensor, or nullptr and a recorded defect.
  const TensorInfo* require(const std::string& name);
  bool has(const std::string& name) const { return file_->find(name) != nullptr; }
  void fail(Error error);
  // Our own code of the device, or nullptr.
  const KernelTable* own_kernels() const { return kernels_; }

  Result<void> status() const { return status_; }
  Result<void> load();
  // Gives every tensor a stand-in address, so that graphs can be measured without loading. Never run such a graph.
  void place_without_data();
  uint64_t weight_bytes() const;

 private:
  struct Slot {
    Tensor tensor;
    std::vector<const TensorInfo*> sources;
    Derive derive;
  };

  std::shared_ptr<const GgufFile> file_;
  ggml_backend_dev_t device_;
  const KernelTable* kernels_;
  ggml_context* context_;
  ggml_backend_buffer_t buffer_ = nullptr;
  std::vector<Slot> slots_;
  Result<void> status_;
};

}  // namespace hocket
