// weights/weight_set.h: the weights of a model: declared by name and shape, placed in memory, then loaded.
//
// Blocks declare what they need:
//
//   Tensor w = set.matrix("blk.0.attn_q.weight", {n_embd, n_embd});
//
// A declaration checks name, shape and type and returns a tensor without data; the first defect is kept and every later
// call still works, so that model code needs no error handling. After all declarations status() tells the defect,
// device_bytes() the memory, and load() fills the tensors.
//
// Owns     tensors and buffers. Mapped weights that need no rearrangement stay in the file's pages; of those that are
//          packed for our own kernels the pages are given back, tensor by tensor.
// Threads  declarations by one user; const after load().
// Errors   kBadModel naming the tensor with the expected and the found shape; kOutOfMemory and kIo from load().
// Cost     load() reads each weight once, on several threads.
#pragma once

#include <ggml-backend.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compute/graph.h"
#include "weights/weight_source.h"

namespace hocket {

struct KernelTable;

class WeightSet {
 public:
  // `source` must outlive the set. `repack`: matrices go into the layout of faster kernels where there is one: that of
  // `kernels` on the CPU (nullptr: none), else one of the device's.
  WeightSet(std::shared_ptr<WeightSource> source, ggml_backend_dev_t device, bool repack, const KernelTable* kernels);
  ~WeightSet();
  WeightSet(const WeightSet&) = delete;
  WeightSet& operator=(const WeightSet&) = delete;

  // A weight of products: [n_in, n_out] or [n_in, n_out, n_expert], in the type of the file.
  Tensor matrix(std::string_view name, const Shape& shape) { return declare(name, shape, Use::kProduct, false); }
  Tensor optional_matrix(std::string_view name, const Shape& shape) {
    return declare(name, shape, Use::kProduct, true);
  }
  // A product for each head: [n_in, n_out, n_head].
  Tensor heads(std::string_view name, const Shape& shape) { return declare(name, shape, Use::kHeads, false); }
  // Rows that are looked up by index, by rows() of compute/graph.h, [n_embd, n_rows]. The same name may be a matrix()
  // too (tied heads).
  Tensor table(std::string_view name, const Shape& shape) { return declare(name, shape, Use::kRows, false); }
  // Small factors and offsets, always F32 in memory.
  Tensor vector(std::string_view name, const Shape& shape) { return declare(name, shape, Use::kElement, false); }
  Tensor optional_vector(std::string_view name, const Shape& shape) {
    return declare(name, shape, Use::kElement, true);
  }

  // Whether the source has the tensor at all (a synthetic source: would make it).
  bool has(std::string_view name, const Shape& shape) { return source_->find(name, shape, true) != nullptr; }
  // Records a defect found by the caller.
  void fail(Error error);

  Result<void> status() const;
  uint64_t device_bytes() const;  // memory that load() takes; mapped pages that are used in place are not counted
  uint64_t weight_bytes() const;  // all weights, wherever they are
  std::size_t n_declared() const { return slots_.size(); }
  // Which code computes the products: "avx512-vnni: q4_0, q6_K; ggml: f32".
  std::string kernels() const;
  // Whether every weight of products is packed for our own kernels.
  bool all_packed() const;

  // progress(0..1) may return false to cancel.
  Result<void> load(const std::function<bool(float)>& progress = nullptr);
  // Gives every tensor a stand-in address, so that graphs can be measured without loading. Never run such a graph.
  void place_without_data();

 private:
  enum class Use { kProduct, kHeads, kRows, kElement };
  struct Slot;
  // A kind of memory and the device that computes with it.
  struct Place {
    ggml_backend_buffer_type_t type;
    ggml_backend_dev_t device;
  };
  static bool runs_in(const Place& place, Tensor tensor, Use use);

  Tensor declare(std::string_view name, const Shape& shape, Use use, bool optional);
  // nullptr when nothing here computes with this tensor in this use.
  ggml_backend_buffer_type_t choose_buffer_type(Tensor tensor, Use use);
  Tensor new_tensor(ggml_type type, const TensorInfo& info);
  bool stays_mapped(const Slot& slot) const;
  bool pack(Slot& slot) const;  // false: the tensor has no kernel
  Result<void> map_in_place();
  Result<void> allocate_buffers();

  std::shared_ptr<WeightSource> source_;
  ggml_backend_dev_t device_;
  ggml_backend_dev_t cpu_;
  const KernelTable* kernels_;
  std::vector<Place> preferred_;  // for products, best first
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<ggml_context*> contexts_;
  std::vector<ggml_backend_buffer_t> buffers_;
  Result<void> status_;
};

}  // namespace hocket
