#include "compute/dense_attention.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "base/check.h"
#include "compute/kernels/kernel_table.h"
#include "compute/thread_scratch.h"

namespace hocket {
namespace {

const std::byte* at(const ggml_tensor* t, int64_t head, int64_t place, int64_t sample) {
  return static_cast<const std::byte*>(t->data) + static_cast<std::size_t>(head) * t->nb[1] +
         static_cast<std::size_t>(place) * t->nb[2] + static_cast<std::size_t>(sample) * t->nb[3];
}

CellHead head_of(const ggml_tensor* t, int64_t head, int64_t first_place, int64_t sample) {
  return {at(t, head, first_place, sample), static_cast<int64_t>(t->nb[2]), t->ne[0], CellType::kF32};
}

bool has_whole_rows(const ggml_tensor* t) {
  return t->type == GGML_TYPE_F32 && t->nb[0] == sizeof(float);
}

// Element n_queries − 1 + j − i says whether query i sees key j; with lengths, element n_keys − length + j whether the
// sample has key j. Behind the last key nothing is seen, as far as a kernel looks.
std::vector<uint16_t> make_mask(const KeySight& sight, int64_t n_queries, int64_t n_keys) {
  if (sight.kind == KeySight::Kind::kAll) {
    std::vector<uint16_t> mask(static_cast<std::size_t>(2 * n_keys + kAttentionCells), kMasked);
    std::fill_n(mask.begin(), n_keys, uint16_t{0});
    return mask;
  }
  std::vector<uint16_t> mask;
  for (int64_t ahead = 1 - n_queries; ahead < n_keys; ++ahead) {
    const bool seen = sight.kind == KeySight::Kind::kBefore ? ahead <= 0 : std::abs(ahead) <= sight.window;
    mask.push_back(seen ? uint16_t{0} : kMasked);
  }
  mask.insert(mask.end(), static_cast<std::size_t>(kAttentionCells), kMasked);
  return mask;
}

}  // namespace

ggml_tensor* DenseAttentions::attend(ggml_context* context, const KernelTable& kernels, ggml_tensor* q, ggml_tensor* k,
                                     ggml_tensor* v, const KeySight& sight, float scale) {
  CHECK(has_whole_rows(q) && has_whole_rows(k) && has_whole_rows(v));
  CHECK(q->ne[0] == k->ne[0] && q->ne[1] % k->ne[1] == 0 && q->ne[3] == k->ne[3] && ggml_are_same_shape(k, v));
  CHECK(sight.key_lengths.empty() || static_cast<int64_t>(sight.key_lengths.size()) == k->ne[3]);
  Attention& attention = attentions_.emplace_back();
  attention.kernels = &kernels;
  attention.scale = scale;
  attention.sight = sight;
  attention.mask = make_mask(sight, q->ne[2], k->ne[2]);
  ggml_tensor* args[] = {q, k, v};
  return ggml_custom_4d(context, GGML_TYPE_F32, q->ne[0] * q->ne[1], q->ne[2] * q->ne[3], 1, 1, args, 3, run,
                        GGML_N_TASKS_MAX, &attention);
}

void DenseAttentions::run(ggml_tensor* dst, int, int nth, void* data) {
  auto& attention = *static_cast<Attention*>(data);
  const KeySight& sight = attention.sight;
  const ggml_tensor *q = dst->src[0], *k = dst->src[1], *v = dst->src[2];
  const int64_t head_dim = q->ne[0], n_head = q->ne[1], n_queries = q->ne[2], n_samples = q->ne[3];
  const int64_t n_kv_head = k->ne[1], n_keys = k->ne[2], n_group = n_head / n_kv_head;
  // Rows that share a head of the keys: all queries' heads of the group, query after query.
  const int64_t n_rows = n_queries * n_group, n_pieces = (n_rows + kAttentionRows - 1) / kAttentionRows;

  const auto attend_rows = [&](int64_t unit) {
    const int64_t sample = unit / (n_pieces * n_kv_head), kv_head = unit % n_kv_head;
    const int64_t piece = unit / n_kv_head % n_pieces;
    const int64_t first = piece * kAttentionRows, end = std::min(n_rows, first + kAttentionRows);
    const int64_t first_query = first / n_group, last_query = (end - 1) / n_group;
    int64_t first_key = 0, end_key = n_keys;
    if (sight.kind == KeySight::Kind::kWindow) {
      first_key = std::clamp<int64_t>(first_query - sight.window, 0, n_keys);
      end_key = std::clamp<int64_t>(last_query + sight.window + 1, 0, n_keys);
    } else if (sight.kind == KeySight::Kind::kBefore) {
      end_key = std::min(n_keys, last_query + 1);
    } else if (!sight.key_lengths.empty()) {
      end_key = sight.key_lengths[static_cast<std::size_t>(sample)];
    }
    AttentionRows rows{};
    rows.k = head_of(k, kv_head, first_key, sample);
    rows.v = head_of(v, kv_head, first_key, sample);
    rows.n_cells = end_key - first_key;
    rows.scale = attention.scale;
    rows.scratch = scratch_of_thread(attention_scratch(head_dim, head_dim, n_keys));
    for (int64_t row = first; row < end; ++row) {
      const int64_t query = row / n_group, head = kv_head * n_group + row % n_group, i = rows.n_rows++;
      rows.q[i] = reinterpret_cast<const float*>(at(q, head, query, sample));
      rows.out[i] = static_cast<float*>(dst->data) + ((sample * n_queries + query) * n_head + head) * head_dim;
      rows.mask[i] = attention.mask.data() +
                     (sight.kind == KeySight::Kind::kAll ? n_keys - end_key : n_queries - 1 - query + first_key);
    }
    attention.kernels->attend(rows);
  };
  const int64_t n_operations = n_samples * n_head * n_queries * n_keys * 2 * head_dim;
  attention.queue.run(n_samples * n_pieces * n_kv_head, n_operations, nth, attend_rows);
}

}  // namespace hocket
