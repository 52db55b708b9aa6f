#include "compute/packed_products.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "compute/kernels/pack.h"

namespace hocket {
namespace {

// Activations that stay in the second-level cache while the weights pass by.
constexpr int64_t kStripBytes = 768 << 10;
// Blocks a thread, so that one which is held up leaves the rest to the others.
constexpr int64_t kBlocksPerThread = 8;

int64_t n_columns(const ggml_tensor* x) {
  return x->ne[1] * x->ne[2] * x->ne[3];
}

const float* column_of(const ggml_tensor* x, int64_t i) {
  const int64_t i1 = i % x->ne[1], i2 = i / x->ne[1] % x->ne[2], i3 = i / (x->ne[1] * x->ne[2]);
  const auto* data = static_cast<const std::byte*>(x->data);
  return reinterpret_cast<const float*>(data + static_cast<std::size_t>(i1) * x->nb[1] +
                                        static_cast<std::size_t>(i2) * x->nb[2] +
                                        static_cast<std::size_t>(i3) * x->nb[3]);
}

// The columns of a batch in the order of their experts, as an I32 tensor.
class Sorting {
 public:
  static int64_t size(int64_t n_columns) { return kFixed + 7 * n_columns; }
  Sorting(const ggml_tensor* tensor, int64_t n) : items_(static_cast<int32_t*>(tensor->data)), n_(n) {}

  int32_t& n_panels() const { return items_[0]; }
  int32_t& n_runs() const { return items_[1]; }
  // The column that is s-th in order.
  int32_t& column(int64_t s) const { return items_[kFixed + s]; }
  // Panels never cross an expert.
  int32_t& panel_first(int64_t p) const { return items_[kFixed + n_ + p]; }
  int32_t& panel_width(int64_t p) const { return items_[kFixed + 2 * n_ + p]; }
  // A run: all panels of an expert.
  int32_t& run_expert(int64_t r) const { return items_[kFixed + 3 * n_ + r]; }
  int32_t& run_first_panel(int64_t r) const { return items_[kFixed + 4 * n_ + r]; }
  int32_t& run_panels(int64_t r) const { return items_[kFixed + 5 * n_ + r]; }
  int32_t& expert_of(int64_t column) const { return items_[kFixed + 6 * n_ + column]; }

 private:
  static constexpr int64_t kFixed = 2;
  int32_t* items_;
  int64_t n_;
};

// All 16 rows into `out` where the matrix has them, else by way of a buffer.
void multiply_group(const PackedMatrix& m, int64_t expert, int64_t group, const std::byte* panel, int64_t width,
                    float* out, int64_t out_stride) {
  const GroupProduct run = m.kernels->products[static_cast<std::size_t>(m.format)];
  const int64_t n_rows = std::min(kGroupRows, m.n_out - group * kGroupRows);
  if (n_rows == kGroupRows) return run(m.group(expert, group), m.n_in, panel, static_cast<int>(width), out, out_stride);
  float rows[kPanelColumns * kGroupRows];
  run(m.group(expert, group), m.n_in, panel, static_cast<int>(width), rows, kGroupRows);
  for (int64_t c = 0; c < width; ++c)
    std::memcpy(out + c * out_stride, rows + c * kGroupRows, static_cast<std::size_t>(n_rows) * sizeof(float));
}

}  // namespace

// ---- building

ggml_tensor* PackedProducts::product(ggml_context* context, ggml_tensor* weight, const PackedMatrix& matrix,
                                     ggml_tensor* x, int64_t first_out) {
  CHECK(x->ne[0] == matrix.n_in && matrix.n_expert == 1);
  ggml_tensor* args[] = {rounded(context, matrix, x, nullptr), weight};
  Product& product = products_.emplace_back(matrix);
  if (first_out > 0) product.matrix = matrix.from_row(first_out);
  return ggml_custom_4d(context, GGML_TYPE_F32, product.matrix.n_out, x->ne[1], x->ne[2], x->ne[3], args, 2, multiply,
                        GGML_N_TASKS_MAX, &product);
}

ggml_tensor* PackedProducts::expert_product(ggml_context* context, ggml_tensor* weight, const PackedMatrix& matrix,
                                            ggml_tensor* x, ggml_tensor* ids) {
  CHECK(x->ne[0] == matrix.n_in && (x->ne[1] == 1 || x->ne[1] == ids->ne[0]) && x->ne[2] == ids->ne[1]);
  ggml_tensor* sorting = sorted(context, matrix, ids);
  ggml_tensor* args[] = {rounded(context, matrix, x, sorting), sorting, weight};
  Product& product = products_.emplace_back(matrix);
  return ggml_custom_4d(context, GGML_TYPE_F32, matrix.n_out, ids->ne[0], ids->ne[1], 1, args, 3, multiply_experts,
                        GGML_N_TASKS_MAX, &product);
}

ggml_tensor* PackedProducts::rows(ggml_context* context, ggml_tensor* weight, const PackedMatrix& matrix,
                                  ggml_tensor* ids) {
  CHECK(ids->type == GGML_TYPE_I32 && ggml_is_vector(ids) && matrix.n_expert == 1);
  ggml_tensor* args[] = {ids, weight};
  return ggml_custom_4d(context, GGML_TYPE_F32, matrix.n_in, ids->ne[0], 1, 1, args, 2, look_up, GGML_N_TASKS_MAX,
                        const_cast<PackedMatrix*>(&matrix));
}

ggml_tensor* PackedProducts::rounded(ggml_context* context, const PackedMatrix& matrix, ggml_tensor* x,
                                     ggml_tensor* sorting) {
  const ActivationForm form = form_of(layout_of(matrix.format));
  for (const Rounded& known : rounded_)
    if (known.x == x && known.sorting == sorting && known.kernels == matrix.kernels && known.form == form)
      return known.result;
  CHECK(x->type == GGML_TYPE_F32);
  ggml_tensor* source = x->nb[0] == sizeof(float) ? x : ggml_cont(context, x);
  Rounding& rounding = add_rounding(matrix, form);
  ggml_tensor* args[] = {source, sorting};
  // With experts each of a token's columns is rounded for its own expert's panel.
  const int64_t n =
      sorting ? (sorting->ne[0] - Sorting::size(0)) / (Sorting::size(1) - Sorting::size(0)) : n_columns(x);
  ggml_tensor* result =
      ggml_custom_4d(context, GGML_TYPE_I8, n * column_bytes(form, matrix.n_in), 1, 1, 1, args, sorting ? 2 : 1,
                     sorting ? round_sorted : round_columns, GGML_N_TASKS_MAX, &rounding);
  rounded_.push_back({x, sorting, matrix.kernels, form, result});
  return result;
}

PackedProducts::Rounding& PackedProducts::add_rounding(const PackedMatrix& matrix, const ActivationForm& form) {
  Rounding& rounding = roundings_.emplace_back();
  rounding.kernels = matrix.kernels;
  rounding.form = form;
  rounding.n_expert = matrix.n_expert;
  return rounding;
}

ggml_tensor* PackedProducts::sorted(ggml_context* context, const PackedMatrix& matrix, ggml_tensor* ids) {
  for (const Rounded& known : rounded_)
    if (known.x == ids && known.sorting == nullptr) return known.result;
  Rounding& rounding = add_rounding(matrix, {});
  ggml_tensor* result = ggml_custom_4d(context, GGML_TYPE_I32, Sorting::size(ids->ne[0] * ids->ne[1]), 1, 1, 1, &ids, 1,
                                       sort_by_expert, 1, &rounding);
  rounded_.push_back({ids, nullptr, nullptr, {}, result});
  return result;
}

// ---- running

void PackedProducts::round_columns(ggml_tensor* dst, int, int nth, void* data) {
  auto& rounding = *static_cast<Rounding*>(data);
  const ggml_tensor* x = dst->src[0];
  const int64_t n_in = x->ne[0], n = n_columns(x);
  auto* panels = static_cast<std::byte*>(dst->data);
  // A unit is a piece of a column: a single column is shared by all threads, too.
  const int64_t n_scales = n_in / rounding.form.scale_block;
  const int n_threads = WorkQueue::n_threads(nth);
  const int64_t n_pieces = n >= n_threads ? 1 : std::min<int64_t>(n_threads, n_scales);
  rounding.queue.run(n * n_pieces, n * n_in, nth, [&](int64_t unit) {
    const int64_t column = unit / n_pieces, piece = unit % n_pieces;
    const int64_t first = n_scales * piece / n_pieces, end = n_scales * (piece + 1) / n_pieces;
    const int64_t start = column / kPanelColumns * kPanelColumns;
    rounding.kernels->quantise(column_of(x, column), first * rounding.form.scale_block, end * rounding.form.scale_block,
                               rounding.form, n_in, panels + start * column_bytes(rounding.form, n_in),
                               static_cast<int>(std::min(kPanelColumns, n - start)), static_cast<int>(column - start));
  });
}

void PackedProducts::multiply(ggml_tensor* dst, int, int nth, void* data) {
  auto& product = *static_cast<Product*>(data);
  const PackedMatrix& m = product.matrix;
  const auto* panels = static_cast<const std::byte*>(dst->src[0]->data);
  const int64_t n = n_columns(dst), bytes = column_bytes(form_of(layout_of(m.format)), m.n_in);
  const int64_t n_panels = (n + kPanelColumns - 1) / kPanelColumns, n_groups = m.n_groups();
  const int64_t strip = std::clamp<int64_t>(kStripBytes / (kPanelColumns * bytes), 1, n_panels);
  const int64_t n_strips = (n_panels + strip - 1) / strip;
  const int64_t n_blocks = kBlocksPerThread * WorkQueue::n_threads(nth);
  const int64_t rows = std::clamp<int64_t>(n_groups * n_strips / n_blocks, 1, n_groups);
  const int64_t n_row_blocks = (n_groups + rows - 1) / rows;
  auto* out = static_cast<float*>(dst->data);

  product.queue.run(n_strips * n_row_blocks, n * m.n_in * m.n_out, nth, [&](int64_t unit) {
    const int64_t first_panel = unit / n_row_blocks * strip, end_panel = std::min(n_panels, first_panel + strip);
    const int64_t first_group = unit % n_row_blocks * rows, end_group = std::min(n_groups, first_group + rows);
    for (int64_t group = first_group; group < end_group; ++group)
      for (int64_t p = first_panel; p < end_panel; ++p) {
        const int64_t column = p * kPanelColumns;
        multiply_group(m, 0, group, panels + column * bytes, std::min(kPanelColumns, n - column),
                       out + column * m.n_out + group * kGroupRows, m.n_out);
      }
  });
}

void PackedProducts::look_up(ggml_tensor* dst, int ith, int nth, void* data) {
  const auto& m = *static_cast<const PackedMatrix*>(data);
  const auto* ids = static_cast<const std::byte*>(dst->src[0]->data);
  const int64_t n = dst->ne[1];
  for (int64_t i = n * ith / nth; i < n * (ith + 1) / nth; ++i) {
    int32_t row;
    std::memcpy(&row, ids + static_cast<std::size_t>(i) * dst->src[0]->nb[0], sizeof row);
    CHECK(row >= 0 && row < m.n_out);
    unpack_row(m.format, m.group(0, row / kGroupRows), row % kGroupRows, m.n_in,
               static_cast<float*>(dst->data) + i * m.n_in);
  }
}

// ---- experts

void PackedProducts::sort_by_expert(ggml_tensor* dst, int ith, int, void* data) {
  if (ith != 0) return;
  const auto& rounding = *static_cast<const Rounding*>(data);
  const ggml_tensor* ids = dst->src[0];
  const int64_t n_used = ids->ne[0], n = n_used * ids->ne[1];
  const Sorting sorting(dst, n);
  for (int64_t i = 0; i < n; ++i) {
    const auto* at = static_cast<const std::byte*>(ids->data) + static_cast<std::size_t>(i % n_used) * ids->nb[0] +
                     static_cast<std::size_t>(i / n_used) * ids->nb[1];
    int32_t expert;
    std::memcpy(&expert, at, sizeof expert);
    CHECK(expert >= 0 && expert < rounding.n_expert);
    sorting.expert_of(i) = expert;
    sorting.column(i) = static_cast<int32_t>(i);
  }
  int32_t* columns = &sorting.column(0);
  std::sort(columns, columns + n, [&](int32_t a, int32_t b) {
    return sorting.expert_of(a) != sorting.expert_of(b) ? sorting.expert_of(a) < sorting.expert_of(b) : a < b;
  });
  int32_t n_panels = 0, n_runs = 0;
  for (int64_t first = 0; first < n;) {
    const int32_t expert = sorting.expert_of(columns[first]);
    int64_t end = first;
    while (end < n && sorting.expert_of(columns[end]) == expert) ++end;
    sorting.run_expert(n_runs) = expert;
    sorting.run_first_panel(n_runs) = n_panels;
    for (; first < end; first += sorting.panel_width(n_panels++)) {
      sorting.panel_first(n_panels) = static_cast<int32_t>(first);
      sorting.panel_width(n_panels) = static_cast<int32_t>(std::min(kPanelColumns, end - first));
    }
    sorting.run_panels(n_runs) = n_panels - sorting.run_first_panel(n_runs);
    ++n_runs;
  }
  sorting.n_panels() = n_panels;
  sorting.n_runs() = n_runs;
}

void PackedProducts::round_sorted(ggml_tensor* dst, int, int nth, void* data) {
  auto& rounding = *static_cast<Rounding*>(data);
  const ggml_tensor* x = dst->src[0];
  const int64_t n_in = x->ne[0], bytes = column_bytes(rounding.form, n_in), n = dst->ne[0] / bytes;
  const int64_t n_used = n / x->ne[2];
  const Sorting sorting(dst->src[1], n);
  rounding.queue.run(sorting.n_panels(), n * n_in, nth, [&](int64_t p) {
    const int64_t first = sorting.panel_first(p), width = sorting.panel_width(p);
    for (int64_t c = 0; c < width; ++c) {
      const int64_t column = sorting.column(first + c), token = column / n_used, slot = column % n_used;
      rounding.kernels->quantise(column_of(x, token * x->ne[1] + (x->ne[1] == 1 ? 0 : slot)), 0, n_in, rounding.form,
                                 n_in, static_cast<std::byte*>(dst->data) + first * bytes, static_cast<int>(width),
                                 static_cast<int>(c));
    }
  });
}

void PackedProducts::multiply_experts(ggml_tensor* dst, int, int nth, void* data) {
  auto& product = *static_cast<Product*>(data);
  const PackedMatrix& m = product.matrix;
  const auto* panels = static_cast<const std::byte*>(dst->src[0]->data);
  const int64_t bytes = column_bytes(form_of(layout_of(m.format)), m.n_in), n_groups = m.n_groups();
  const Sorting sorting(dst->src[1], n_columns(dst));
  const int64_t n_runs = sorting.n_runs();
  const int64_t n_blocks = kBlocksPerThread * WorkQueue::n_threads(nth);
  const int64_t rows = std::clamp<int64_t>(n_groups * n_runs / n_blocks, 1, n_groups);
  const int64_t n_row_blocks = (n_groups + rows - 1) / rows;
  auto* out = static_cast<float*>(dst->data);

  product.queue.run(n_runs * n_row_blocks, n_columns(dst) * m.n_in * m.n_out, nth, [&](int64_t unit) {
    const int64_t run = unit / n_row_blocks;
    const int64_t first_group = unit % n_row_blocks * rows, end_group = std::min(n_groups, first_group + rows);
    const int64_t first_panel = sorting.run_first_panel(run), end_panel = first_panel + sorting.run_panels(run);
    for (int64_t group = first_group; group < end_group; ++group)
      for (int64_t p = first_panel; p < end_panel; ++p) {
        const int64_t first = sorting.panel_first(p), width = sorting.panel_width(p);
        float columns[kPanelColumns * kGroupRows];
        multiply_group(m, sorting.run_expert(run), group, panels + first * bytes, width, columns, kGroupRows);
        const int64_t row = group * kGroupRows, n_rows = std::min(kGroupRows, m.n_out - row);
        for (int64_t c = 0; c < width; ++c)
          std::memcpy(out + sorting.column(first + c) * m.n_out + row, columns + c * kGroupRows,
                      static_cast<std::size_t>(n_rows) * sizeof(float));
      }
  });
}

}  // namespace hocket
