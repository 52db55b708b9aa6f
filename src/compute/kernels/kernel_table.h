// compute/kernels/kernel_table.h: our own kernels, one table an instruction set, chosen when the program runs.
//
// All tables compute the same: integers within a block, then for each output one chain of float operations in the order
// of k, the same for every width of a panel and on every CPU:
//
//   sum ← fma(float(Σ w·x) · x_scale, w_scale, sum)        (one scale of x for a block of 32)
//   sum ← fma(w_minimum, x_scale · Σ x, sum)               (formats with minima)
// and for formats with super-blocks (the K formats and IQ4_XS)
//
//   part ← fma(float(Σ w·x), w_scale, part)                (w_scale = d · scale, exact)
//   part ← fma(w_minimum, float(Σ x), part)
//   sum ← fma(part, x_scale, sum), part ← 0                at the end of each 256
//
// Weights that are floats: sum ← fma(w, x, sum).
//
// A result therefore has the same bits whatever the batch, the neighbours, the threads and the instruction set.
//
// Threads  pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compute/kernels/attention.h"
#include "compute/kernels/convolution.h"
#include "compute/kernels/delta.h"
#include "compute/kernels/format.h"

namespace hocket {

// The products of a group of 16 rows with a panel of 1 to 12 columns: out[column · out_stride + row], all 16 rows.
using GroupProduct = void (*)(const std::byte* group, int64_t n_in, const std::byte* panel, int width, float* out,
                              int64_t out_stride);
// Rounds x[k] for k in [first, end), multiples of the form's scale block, into column `column` of a panel.
using QuantiseColumn = void (*)(const float* x, int64_t first, int64_t end, const ActivationForm& form, int64_t n_in,
                                std::byte* panel, int width, int column);

struct KernelTable {
  const char* name;  // "avx512-vnni"
  QuantiseColumn quantise;
  GroupProduct products[kPackedFormats];
  AttendRows attend;
  RunDelta delta;
  ConvolveTile convolve;
  SnakeRow snake;
};

// Those that this program has for this kind of CPU, best first; the last is the portable reference.
const std::vector<const KernelTable*>& all_kernels();
bool runs_here(const KernelTable& kernels);

// "auto": the best that runs here, nullptr when only the reference does, which is slower than ggml's code.
// Otherwise the table of that name, nullptr when there is none or it does not run here.
const KernelTable* find_kernels(std::string_view name);

// For `hocket --version`: "avx2 portable (not on this CPU: avx512-vnni avx-vnni)".
std::string describe_kernels();

}  // namespace hocket
