#include "compute/cell_attention.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/check.h"
#include "compute/kernels/kernel_table.h"

namespace hocket {
namespace {

constexpr uint16_t kMasked = 0xFC00;  // −∞ in half precision
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

// Cells that a row sees are within [first, end).
struct CellRange {
  int64_t first, end;
};

CellRange seen(const uint16_t* mask, int64_t n) {
  int64_t end = n, first = 0;
  while (end > 0 && mask[end - 1] == kMasked) --end;
  while (first < end && mask[first] == kMasked) ++first;
  return {first, end};
}

float* scratch_of_thread(int64_t n_floats) {
  constexpr std::size_t kAlignment = 64 / sizeof(float);
  thread_local std::vector<float> scratch;
  if (scratch.size() < static_cast<std::size_t>(n_floats) + kAlignment)
    scratch.resize(static_cast<std::size_t>(n_floats) + kAlignment);
  const auto misplaced = reinterpret_cast<uintptr_t>(scratch.data()) / sizeof(float) % kAlignment;
  return scratch.data() + (kAlignment - misplaced) % kAlignment;
}

}  // namespace

bool CellAttentions::can_attend(const ggml_tensor* q, const ggml_tensor* k, const ggml_tensor* v) {
  return q->type == GGML_TYPE_F32 && cell_type(k->type) && cell_type(v->type) && q->nb[0] == sizeof(float) &&
         k->nb[0] == ggml_type_size(k->type) && v->nb[0] == ggml_type_size(v->type);
}

ggml_tensor* CellAttentions::attend(ggml_context* context, const KernelTable& kernels, ggml_tensor* q, ggml_tensor* k,
                                    ggml_tensor* v, ggml_tensor* mask, ggml_tensor* sinks, float scale) {
  CHECK(can_attend(q, k, v) && mask->type == GGML_TYPE_F16 && mask->nb[0] == sizeof(uint16_t));
  CHECK(k->ne[0] == q->ne[0] && k->ne[1] == v->ne[1] && k->ne[2] == v->ne[2] && q->ne[2] % k->ne[2] == 0);
  CHECK(mask->ne[0] == k->ne[1] && mask->ne[1] == q->ne[1]);
  Attention& attention = attentions_.emplace_back();
  attention.kernels = &kernels;
  attention.scale = scale;
  ggml_tensor* args[] = {q, k, v, mask, sinks};
  return ggml_custom_4d(context, GGML_TYPE_F32, v->ne[0], q->ne[2], q->ne[1], 1, args, sinks ? 5 : 4, run,
                        GGML_N_TASKS_MAX, &attention);
}

void CellAttentions::run(ggml_tensor* dst, int, int nth, void* data) {
  auto& attention = *static_cast<Attention*>(data);
  const ggml_tensor *q = dst->src[0], *k = dst->src[1], *v = dst->src[2], *mask = dst->src[3], *sinks = dst->src[4];
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
    rows.n_cells = n_kv;
    rows.scale = attention.scale;
    rows.scratch = scratch_of_thread(attention_scratch(k->ne[0], v->ne[0], n_kv));
    rows.first_cell = n_kv;
    rows.end_cell = 0;
    int64_t last_query = -1;
    for (int64_t row = piece * rows_each; row < std::min(n_rows, (piece + 1) * rows_each); ++row) {
      const int64_t query = row / n_group, head = kv_head * n_group + row % n_group, i = rows.n_rows++;
      rows.q[i] = reinterpret_cast<const float*>(at(q, query, head));
      rows.mask[i] = reinterpret_cast<const uint16_t*>(at(mask, query, 0));
      rows.out[i] = static_cast<float*>(dst->data) + (query * q->ne[2] + head) * v->ne[0];
      rows.sink[i] = sinks ? static_cast<const float*>(sinks->data) + head : nullptr;
      if (query == last_query) continue;
      last_query = query;
      const CellRange range = seen(rows.mask[i], n_kv);
      if (range.first == range.end) continue;
      rows.first_cell = std::min(rows.first_cell, range.first);
      rows.end_cell = std::max(rows.end_cell, range.end);
    }
    if (rows.end_cell == 0) rows.first_cell = 0;
    attention.kernels->attend(rows);
  };
  const int64_t n_operations = n_rows * n_kv_head * n_kv * (k->ne[0] + v->ne[0]);
  attention.queue.run(n_pieces * n_kv_head, n_operations, nth, attend_rows);
}

}  // namespace hocket
