#include "compute/convolutions.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/check.h"
#include "compute/kernels/kernel_table.h"
#include "compute/thread_scratch.h"

namespace hocket {
namespace {

// Panels that stay in the second-level cache while the weights pass by.
constexpr int64_t kStripFloats = (768 << 10) / sizeof(float);
constexpr int64_t kGroupsAtOnce = 2;
// Weights that stay in the first-level cache while the panels pass by.
constexpr int64_t kChunkInputs = (16 << 10) / (kGroupsAtOnce * kConvolutionRows * sizeof(float));
// Runs a thread, so that one which is held up leaves the rest to the others.
constexpr int64_t kRunsPerThread = 8;
constexpr int64_t kSnakeRows = 64;

const float* row_of(const ggml_tensor* x, int64_t i) {
  return reinterpret_cast<const float*>(static_cast<const std::byte*>(x->data) +
                                        static_cast<std::size_t>(i) * x->nb[1]);
}

bool has_whole_rows(const ggml_tensor* x) {
  return x->type == GGML_TYPE_F32 && x->nb[0] == sizeof(float) && x->ne[2] * x->ne[3] == 1;
}

// Panel p of a result has the columns block · 12 · dilation + residue + c · dilation, c < 12.
struct Panel {
  int64_t first, width;
};

Panel panel_at(const ConvolutionShape& s, int64_t p) {
  const int64_t first = p / s.dilation * kConvolutionColumns * s.dilation + p % s.dilation;
  const int64_t left = first < s.n ? (s.n - first + s.dilation - 1) / s.dilation : 0;
  return {first, std::min(kConvolutionColumns, left)};
}

// The columns that a panel's outputs read.
void fill(const ConvolutionShape& s, const ggml_tensor* x, const Panel& panel, int64_t stride, float* out) {
  for (int64_t c = 0; c < panel.width + s.n_taps - 1; ++c, out += stride) {
    const int64_t column = panel.first + s.first + c * s.dilation;
    if (column < 0 || column >= x->ne[1])
      std::fill_n(out, s.n_in, 0.0f);
    else
      std::copy_n(row_of(x, column), s.n_in, out);
  }
}

// Calls f(panel, its c-th column, column of the result) for panels [first, end).
template <class F>
void for_columns(const ConvolutionShape& s, int64_t first, int64_t end, const F& f) {
  for (int64_t p = first; p < end; ++p) {
    const Panel panel = panel_at(s, p);
    for (int64_t c = 0; c < panel.width; ++c) f(p, c, panel.first + c * s.dilation);
  }
}

// What a column of the tiles of some groups holds before the products, and where it goes after them.
void begin_column(const float* start, const float* added, int64_t n_rows, float* to) {
  for (int64_t row = 0; row < n_rows; row += kConvolutionRows, to += kConvolutionTile) {
    float sums[kConvolutionRows];
    std::memcpy(sums, start + row, sizeof(sums));
    if (added && n_rows - row >= kConvolutionRows) {
      for (int64_t r = 0; r < kConvolutionRows; ++r) sums[r] += added[row + r];
    } else if (added) {
      for (int64_t r = 0; r < n_rows - row; ++r) sums[r] += added[row + r];
    }
    std::memcpy(to, sums, sizeof(sums));
  }
}

void copy_column(const float* from, int64_t n_rows, float* to) {
  for (int64_t row = 0; row < n_rows; row += kConvolutionRows, from += kConvolutionTile) {
    if (n_rows - row >= kConvolutionRows) {
      std::memcpy(to + row, from, kConvolutionRows * sizeof(float));
    } else {
      for (int64_t r = 0; r < n_rows - row; ++r) to[row + r] = from[r];
    }
  }
}

}  // namespace

ggml_tensor* Convolutions::convolve(ggml_context* context, const KernelTable& kernels, const ConvolutionShape& shape,
                                    ggml_tensor* weights, ggml_tensor* x, ggml_tensor* bias, ggml_tensor* added) {
  CHECK(has_whole_rows(x) && x->ne[0] == shape.n_in && shape.n > 0 && shape.dilation > 0);
  CHECK(ggml_nelements(weights) == packed_convolution_size(shape.n_in, shape.n_out, shape.n_taps));
  CHECK(!bias || ggml_nelements(bias) == shape.n_out);
  CHECK(!added || (has_whole_rows(added) && added->ne[0] == shape.n_out && added->ne[1] == shape.n));
  Operation& operation = operations_.emplace_back();
  operation.kernels = &kernels;
  operation.shape = shape;
  operation.with_bias = bias != nullptr;
  operation.with_added = added != nullptr;
  ggml_tensor* args[4] = {x, weights};
  int n_args = 2;
  for (ggml_tensor* more : {bias, added})
    if (more) args[n_args++] = more;
  return ggml_custom_4d(context, GGML_TYPE_F32, shape.n_out, shape.n, 1, 1, args, n_args, run_convolution,
                        GGML_N_TASKS_MAX, &operation);
}

void Convolutions::run_convolution(ggml_tensor* dst, int, int nth, void* data) {
  auto& operation = *static_cast<Operation*>(data);
  const ConvolutionShape& s = operation.shape;
  const ggml_tensor* x = dst->src[0];
  const auto* weights = static_cast<const float*>(dst->src[1]->data);
  const auto* bias = operation.with_bias ? static_cast<const float*>(dst->src[2]->data) : nullptr;
  const ggml_tensor* added = operation.with_added ? dst->src[operation.with_bias ? 3 : 2] : nullptr;
  auto* out = static_cast<float*>(dst->data);

  // A line more than the columns have, so that they do not fall on the same lines of the cache.
  const int64_t stride = s.n_in + 16, panel_floats = (kConvolutionColumns + s.n_taps - 1) * stride;
  const int64_t block = kConvolutionColumns * s.dilation;
  const int64_t n_panels = (s.n + block - 1) / block * s.dilation;
  const int64_t n_runs_wanted = kRunsPerThread * WorkQueue::n_threads(nth);
  const int64_t each =
      std::clamp<int64_t>(std::min(kStripFloats / panel_floats, n_panels / n_runs_wanted), 1, n_panels);
  const int64_t n_groups = (s.n_out + kConvolutionRows - 1) / kConvolutionRows;
  const int64_t group_floats = kConvolutionRows * s.n_in * s.n_taps;

  operation.queue.run((n_panels + each - 1) / each, s.n * s.n_out * s.n_in * s.n_taps, nth, [&](int64_t run) {
    const int64_t first = run * each, end = std::min(n_panels, first + each);
    constexpr int64_t kTiles = kGroupsAtOnce * kConvolutionTile;  // of a panel
    float* const tiles = scratch_of_thread(each * (kTiles + panel_floats));
    float* const panels = tiles + each * kTiles;
    for (int64_t p = first; p < end; ++p) fill(s, x, panel_at(s, p), stride, panels + (p - first) * panel_floats);
    for (int64_t group = 0; group < n_groups; group += kGroupsAtOnce) {
      const int64_t end_group = std::min(n_groups, group + kGroupsAtOnce);
      const int64_t row = group * kConvolutionRows, n_rows = std::min(end_group * kConvolutionRows, s.n_out) - row;
      float start[kGroupsAtOnce * kConvolutionRows] = {};
      if (bias) std::copy_n(bias + row, n_rows, start);
      for_columns(s, first, end, [&](int64_t p, int64_t c, int64_t column) {
        begin_column(start, added ? row_of(added, column) + row : nullptr, n_rows,
                     tiles + (p - first) * kTiles + c * kConvolutionRows);
      });
      // Chunk after chunk of the weights for all panels: whole taps, or parts of one, in the order of the chain.
      const int64_t n_taps_each = std::max<int64_t>(1, kChunkInputs / s.n_in),
                    n_in_each = std::min(s.n_in, kChunkInputs);
      for (int64_t tap = 0; tap < s.n_taps; tap += n_taps_each)
        for (int64_t in = 0; in < s.n_in; in += n_in_each) {
          const float* chunk = weights + group * group_floats + (tap * s.n_in + in) * kConvolutionRows;
          for (int64_t p = first; p < end; ++p)
            operation.kernels->convolve({chunk, group_floats, end_group - group,
                                         panels + (p - first) * panel_floats + tap * stride + in,
                                         std::min(n_in_each, s.n_in - in), std::min(n_taps_each, s.n_taps - tap),
                                         stride, panel_at(s, p).width, tiles + (p - first) * kTiles});
        }
      for_columns(s, first, end, [&](int64_t p, int64_t c, int64_t column) {
        copy_column(tiles + (p - first) * kTiles + c * kConvolutionRows, n_rows, out + column * s.n_out + row);
      });
    }
  });
}

ggml_tensor* Convolutions::snake(ggml_context* context, const KernelTable& kernels, ggml_tensor* x,
                                 ggml_tensor* frequency, ggml_tensor* height) {
  CHECK(has_whole_rows(x) && ggml_nelements(frequency) == x->ne[0] && ggml_nelements(height) == x->ne[0]);
  Operation& operation = operations_.emplace_back();
  operation.kernels = &kernels;
  ggml_tensor* args[] = {x, frequency, height};
  return ggml_custom_4d(context, GGML_TYPE_F32, x->ne[0], x->ne[1], 1, 1, args, 3, run_snake, GGML_N_TASKS_MAX,
                        &operation);
}

void Convolutions::run_snake(ggml_tensor* dst, int, int nth, void* data) {
  auto& operation = *static_cast<Operation*>(data);
  const ggml_tensor* x = dst->src[0];
  const auto* frequency = static_cast<const float*>(dst->src[1]->data);
  const auto* height = static_cast<const float*>(dst->src[2]->data);
  auto* out = static_cast<float*>(dst->data);
  const int64_t n_channels = x->ne[0], n = x->ne[1];
  constexpr int64_t kOperations = 16;  // of an element, about
  operation.queue.run((n + kSnakeRows - 1) / kSnakeRows, n * n_channels * kOperations, nth, [&](int64_t unit) {
    for (int64_t i = unit * kSnakeRows; i < std::min(n, (unit + 1) * kSnakeRows); ++i)
      operation.kernels->snake(row_of(x, i), frequency, height, n_channels, out + i * n_channels);
  });
}

}  // namespace hocket
