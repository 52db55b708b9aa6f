// compute/convolutions.h: our own one-dimensional convolutions and snake activation, as operations of a graph.
//
// A signal is [n_channels, n]: the channels of a sample are neighbours. Threads take runs of output columns; a run's
// inputs go into panels in the thread's own cache, so that nothing is unfolded in memory: an operation reads its signal
// and writes its result, and needs nothing beside them. Of a dilated convolution a panel takes every dilation-th
// column, and is as dense as any.
//
// Owns     what the operations need while the graph lives.
// Threads  one user at a time builds; operations run on all threads of a graph.
// Cost     n_out · n_in · n_taps multiply-adds a column; each thread keeps its scratch, about 1 MiB.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "compute/work_queue.h"

namespace hocket {

struct KernelTable;

struct ConvolutionShape {
  int64_t n_in = 0, n_out = 0, n_taps = 1;
  int64_t dilation = 1;
  int64_t first = 0;  // column of x that the first tap of column 0 reads; columns outside of x are zeros
  int64_t n = 0;      // columns of the result
};

constexpr int64_t packed_convolution_size(int64_t n_in, int64_t n_out, int64_t n_taps) {
  return (n_out + 15) / 16 * 16 * n_in * n_taps;
}

// The weights of a convolution as it reads them; `at(out, tap, in)` gives each.
template <class At>
std::vector<float> packed_convolution(int64_t n_in, int64_t n_out, int64_t n_taps, const At& at) {
  std::vector<float> packed;
  packed.reserve(static_cast<std::size_t>(packed_convolution_size(n_in, n_out, n_taps)));
  for (int64_t group = 0; group < n_out; group += 16)
    for (int64_t tap = 0; tap < n_taps; ++tap)
      for (int64_t in = 0; in < n_in; ++in)
        for (int64_t out = group; out < group + 16; ++out) packed.push_back(out < n_out ? at(out, tap, in) : 0.0f);
  return packed;
}

class Convolutions {
 public:
  // weights F32 as packed_convolution() makes them, x F32 [n_in, …] with whole rows, bias F32 [n_out] or nullptr, added
  // F32 [n_out, n] or nullptr → bias + added + convolution [n_out, n].
  ggml_tensor* convolve(ggml_context* context, const KernelTable& kernels, const ConvolutionShape& shape,
                        ggml_tensor* weights, ggml_tensor* x, ggml_tensor* bias, ggml_tensor* added);
  // x + height · sin²(frequency · x); x F32 [n_channels, n] with whole rows, the others [n_channels].
  ggml_tensor* snake(ggml_context* context, const KernelTable& kernels, ggml_tensor* x, ggml_tensor* frequency,
                     ggml_tensor* height);

 private:
  struct Operation {
    const KernelTable* kernels = nullptr;
    ConvolutionShape shape;
    bool with_bias = false, with_added = false;
    WorkQueue queue;
  };
  static void run_convolution(ggml_tensor* dst, int ith, int nth, void* operation);
  static void run_snake(ggml_tensor* dst, int ith, int nth, void* operation);

  std::deque<Operation> operations_;
};

}  // namespace hocket
