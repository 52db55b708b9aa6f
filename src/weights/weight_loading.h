// weights/weight_loading.h: fills tensors that have memory with the weights of a source: as they are, as F32, or packed
// for our own kernels.
//
// Threads  n_threads fill beside each other; of a large packed weight each a piece of its rows.
// Errors   kIo of the source; kOutOfMemory naming the tensor; kCancelled.
// Cost     reads each weight once, whole where the source is no mapping; what a mapping has is given back when its
// tensor
//          is filled.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "compute/graph.h"
#include "weights/weight_source.h"

namespace hocket {

struct PackedMatrix;

struct WeightToLoad {
  const TensorInfo* info;
  Tensor tensor;
  const PackedMatrix* packed;  // nullptr: it is not
  bool to_f32;
};

// progress(0..1) may return false to cancel.
Result<void> load_weights(const WeightSource& source, const std::vector<WeightToLoad>& weights, int n_threads,
                          const std::function<bool(float)>& progress);

}  // namespace hocket
