#include "compute/convolutions.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "compute/kernels/kernel_table.h"
#include "compute/thread_scratch.h"

namespace hocket {
namespace {

// Panels that stay in the second-level cache while the weights pass by.
constexpr int64_t kStripFloats = (768 << 10) / sizeof(float);
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

// The columns that a panel's outputs read, transposed: out[k · stride + c].
void fill(const ConvolutionShape& s, const ggml_tensor* x, const Panel& panel, int64_t stride, float* out) {
  for (int64_t c = 0; c < panel.width + s.n_taps - 1; ++c) {
    const int64_t column = panel.first + s.first + c * s.dilation;
    if (column < 0 || column >= x->ne[1]) {
      for (int64_t k = 0; k < s.n_in; ++k) out[k * stride + c] = 0.0f;
      continue;
    }
    const float* from = row_of(x, column);
    for (int64_t k = 0; k < s.n_in; ++k) out[k * stride + c] = from[k];
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

  const int64_t stride = kConvolutionColumns + s.n_taps - 1, panel_floats = s.n_in * stride;
  const int64_t block = kConvolutionColumns * s.dilation;
  const int64_t n_panels = (s.n + block - 1) / block * s.dilation;
  const int64_t n_runs_wanted = kRunsPerThread * WorkQueue::n_threads(nth);
  const int64_t each =
      std::clamp<int64_t>(std::min(kStripFloats / panel_floats, n_panels / n_runs_wanted), 1, n_panels);
  const int64_t n_groups = (s.n_out + kConvolutionRows - 1) / kConvolutionRows;
  const int64_t group_floats = kConvolutionRows * s.n_in * s.n_taps;

  operation.queue.run((n_panels + each - 1) / each, s.n * s.n_out * s.n_in * s.n_taps, nth, [&](int64_t run) {
    const int64_t first = run * each, end = std::min(n_panels, first + each);
    float* const panels = scratch_of_thread(each * panel_floats);
    for (int64_t p = first; p < end; ++p) fill(s, x, panel_at(s, p), stride, panels + (p - first) * panel_floats);
    for (int64_t group = 0; group < n_groups; ++group) {
      const int64_t row = group * kConvolutionRows, n_rows = std::min(kConvolutionRows, s.n_out - row);
      for (int64_t p = first; p < end; ++p) {
        const Panel panel = panel_at(s, p);
        alignas(64) float tile[kConvolutionColumns * kConvolutionRows] = {};
        for (int64_t c = 0; c < panel.width; ++c) {
          const float* more = added ? row_of(added, panel.first + c * s.dilation) + row : nullptr;
          for (int64_t r = 0; r < n_rows; ++r)
            tile[c * kConvolutionRows + r] = (bias ? bias[row + r] : 0.0f) + (more ? more[r] : 0.0f);
        }
        operation.kernels->convolve({weights + group * group_floats, panels + (p - first) * panel_floats, s.n_in,
                                     s.n_taps, stride, panel.width, tile});
        for (int64_t c = 0; c < panel.width; ++c)
          std::copy_n(tile + c * kConvolutionRows, n_rows, out + (panel.first + c * s.dilation) * s.n_out + row);
      }
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
