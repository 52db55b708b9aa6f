#include "compute/cell_attention.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/check.h"
#include "compute/kernels/kernel_table.h"
#include "compute/thread_scratch.h"

namespace hocket {
namespace {

constexpr int64_t kPiecesPerThread = 4;

std::optional<CellType> cell_type(ggml_type type) {
  if (type == GGML_TYPE_F32) return CellType::kF32;
  if (type == GGML_TYPE_F16) return CellType::kF16;
  if (type == GGML_TYPE_BF16) return CellType::kBF16;
  return std::nullopt;
}

const std::byte* at(const ggml_tensor* t, int64_t i1, int64_t i2) {
  return static_cast<const std::byte*>(t->data) + static_cast<std::size_t>(i1) * t->nb[1] +
         static_cast<std::size_t>(i2) * t->nb[2];
}

CellHead head_of(const ggml_tensor* t, int64_t head) {
  return {at(t, 0, head), static_cast<int64_t>(t->nb[1]), t->ne[0], *cell_type(t->type)};
}

const uint16_t* mask_of(const ggml_tensor* mask, int64_t query) {
  return reinterpret_cast<const uint16_t*>(at(mask, query, 0));
}

// The cells that one of n queries sees, in their order (nullptr: as they lie); how many.
int64_t seen_cells(const ggml_tensor* mask, int64_t first_query, int64_t n, const int32_t* order, int32_t* cells) {
  int64_t n_seen = 0;
  for (int64_t i = 0; i < mask->ne[0]; ++i) {
    const int32_t cell = order ? order[i] : static_cast<int32_t>(i);
    // Later queries see more.
    for (int64_t query = first_query + n; query-- > first_query;)
      if (mask_of(mask, query)[cell] != kMasked) {
        cells[n_seen++] = cell;
        break;
      }
  }
  return n_seen;
}

// What the queries' masks say of these cells, a query each `stride`.
void gather_masks(const ggml_tensor* mask, int64_t first_query, int64_t n, const int32_t* cells, int64_t n_cells,
                  int64_t stride, uint16_t* out) {
  for (int64_t query = 0; query < n; ++query, out += stride) {
    const uint16_t* from = mask_of(mask, first_query + query);
    for (int64_t i = 0; i < n_cells; ++i) out[i] = from[cells[i]];
    std::fill(out + n_cells, out + padded_cells(n_cells), kMasked);
  }
}

}  // namespace

bool CellAttentions::can_attend(const ggml_tensor* q, const ggml_tensor* k, const ggml_tensor* v) {
  return q->type == GGML_TYPE_F32 && cell_type(k->type) && cell_type(v->type) && q->nb[0] == sizeof(float) &&
         k->nb[0] == ggml_type_size(k->type) && v->nb[0] == ggml_type_size(v->type);
}

ggml_tensor* CellAttentions::attend(ggml_context* context, const KernelTable& kernels, ggml_tensor* q, ggml_tensor* k,
                                    ggml_tensor* v, ggml_tensor* mask, const CellAttentionOptions& options) {
  ggml_tensor *const sinks = options.sinks, *const order = options.order;
  CHECK(can_attend(q, k, v) && mask->type == GGML_TYPE_F16 && mask->nb[0] == sizeof(uint16_t));
  CHECK(k->ne[0] == q->ne[0] && k->ne[1] == v->ne[1] && k->ne[2] == v->ne[2] && q->ne[2] % k->ne[2] == 0);
  CHECK(mask->ne[0] == k->ne[1] && mask->ne[1] == q->ne[1]);
  CHECK(!order || (order->type == GGML_TYPE_I32 && order->ne[0] == k->ne[1]));
  Attention& attention = attentions_.emplace_back();
  attention.kernels = &kernels;
  attention.scale = options.scale;
  attention.softcap = options.softcap;
  attention.has_sinks = sinks != nullptr;
  attention.has_order = order != nullptr;
  ggml_tensor* args[6] = {q, k, v, mask};
  int n_args = 4;
  for (ggml_tensor* optional : {sinks, order})
    if (optional) args[n_args++] = optional;
  return ggml_custom_4d(context, GGML_TYPE_F32, v->ne[0], q->ne[2], q->ne[1], 1, args, n_args, run, GGML_N_TASKS_MAX,
                        &attention);
}

void CellAttentions::run(ggml_tensor* dst, int, int nth, void* data) {
  auto& attention = *static_cast<Attention*>(data);
  const ggml_tensor *q = dst->src[0], *k = dst->src[1], *v = dst->src[2], *mask = dst->src[3];
  const ggml_tensor* sinks = attention.has_sinks ? dst->src[4] : nullptr;
  const ggml_tensor* order_tensor = attention.has_order ? dst->src[attention.has_sinks ? 5 : 4] : nullptr;
  const auto* order = order_tensor ? static_cast<const int32_t*>(order_tensor->data) : nullptr;
  if (order && *order < 0) order = nullptr;
  const int64_t n_queries = q->ne[1], n_kv = k->ne[1], n_kv_head = k->ne[2], n_group = q->ne[2] / n_kv_head;
  // Rows that share a head of the cache: all queries' heads of the group, query after query.
  const int64_t n_rows = n_queries * n_group;
  const int n_threads = WorkQueue::n_threads(nth);
  const int64_t least = n_kv_head >= n_threads ? n_group : 1;
  const int64_t rows_each =
      std::clamp<int64_t>(std::max(least, n_rows * n_kv_head / (kPiecesPerThread * n_threads)), 1, kAttentionRows);
  const int64_t n_pieces = (n_rows + rows_each - 1) / rows_each;

  const auto attend_rows = [&](int64_t unit) {
    // The last queries see the most cells: they come first.
    const int64_t kv_head = unit % n_kv_head, piece = n_pieces - 1 - unit / n_kv_head;
    AttentionRows rows{};
    rows.k = head_of(k, kv_head);
    rows.v = head_of(v, kv_head);
    rows.scale = attention.scale;
    rows.softcap = attention.softcap;
    const int64_t n_scratch = attention_scratch(k->ne[0], v->ne[0], n_kv), n_most = padded_cells(n_kv);
    rows.scratch = scratch_of_thread(n_scratch + n_most + kAttentionRows * n_most / 2);
    auto* const cells = reinterpret_cast<int32_t*>(rows.scratch + n_scratch);
    auto* const masks = reinterpret_cast<uint16_t*>(cells + n_most);
    const int64_t first_row = piece * rows_each, end_row = std::min(n_rows, first_row + rows_each);
    const int64_t first_query = first_row / n_group, n_here = (end_row - 1) / n_group - first_query + 1;
    rows.cells = cells;
    rows.n_cells = seen_cells(mask, first_query, n_here, order, cells);
    gather_masks(mask, first_query, n_here, cells, rows.n_cells, n_most, masks);
    for (int64_t row = first_row; row < end_row; ++row) {
      const int64_t query = row / n_group, head = kv_head * n_group + row % n_group, i = rows.n_rows++;
      rows.q[i] = reinterpret_cast<const float*>(at(q, query, head));
      rows.mask[i] = masks + (query - first_query) * n_most;
      rows.out[i] = static_cast<float*>(dst->data) + (query * q->ne[2] + head) * v->ne[0];
      rows.sink[i] = sinks ? static_cast<const float*>(sinks->data) + head : nullptr;
    }
    attention.kernels->attend(rows);
  };
  const int64_t n_operations = n_rows * n_kv_head * n_kv * (k->ne[0] + v->ne[0]);
  attention.queue.run(n_pieces * n_kv_head, n_operations, nth, attend_rows);
}

}  // namespace hocket
