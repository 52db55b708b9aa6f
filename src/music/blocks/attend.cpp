#include "music/blocks/attend.h"

#include <algorithm>
#include <cmath>

namespace hocket {
namespace {

constexpr int64_t kScoreElements = 8 << 20;  // of one tile: 32 MiB
constexpr int64_t kLeastRows = 16;
constexpr int64_t kWindowRows = 256;  // of a tile of a windowed layer

int64_t tile_rows(int64_t n_queries, int64_t n_keys, int64_t n_head, int64_t n_samples) {
  return std::min(n_queries, std::max(kLeastRows, kScoreElements / std::max<int64_t>(1, n_keys * n_head * n_samples)));
}

// Joins along dimension 2 as a tree: each row is copied log₂(tiles) times.
Tensor join(ggml_context* c, const std::vector<Tensor>& tiles, std::size_t first, std::size_t last) {
  if (last - first == 1) return tiles[first];
  const std::size_t middle = first + (last - first) / 2;
  return ggml_concat(c, join(c, tiles, first, middle), join(c, tiles, middle, last), 2);
}

}  // namespace

Tensor attend(NetworkGraph& g, Tensor q, Tensor k, Tensor v, const Sight& sight) {
  ggml_context* c = g.context();
  if (g.own_kernels())
    return g.dense_attentions().attend(c, *g.own_kernels(), q, k, v, sight,
                                       1.0f / std::sqrt(static_cast<float>(q->ne[0])));
  const int64_t head_dim = q->ne[0], n_head = q->ne[1], n_queries = q->ne[2], n_samples = q->ne[3];
  const int64_t n_kv_head = k->ne[1], n_keys = k->ne[2];
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  const bool windowed = sight.kind == Sight::Kind::kWindow && n_keys > sight.window + 1;
  const bool causal = sight.kind == Sight::Kind::kBefore;
  // A tile of a windowed layer has few keys, so that its scores are small whatever the length of the song.
  const int64_t rows = windowed ? std::min(n_queries, kWindowRows) : tile_rows(n_queries, n_keys, n_head, n_samples);
  bool some_keys_hidden = false;
  for (const int64_t length : sight.key_lengths) some_keys_hidden |= length < n_keys;

  Tensor queries = ggml_permute(c, q, 0, 2, 1, 3);               // [head_dim, n_queries, n_head, n_samples]
  Tensor keys = ggml_permute(c, k, 0, 2, 1, 3);                  // [head_dim, n_keys, n_kv_head, n_samples]
  Tensor values = ggml_cont(c, ggml_permute(c, v, 1, 2, 0, 3));  // [n_keys, head_dim, n_kv_head, n_samples]
  std::vector<Tensor> tiles;
  for (int64_t first = 0; first < n_queries; first += rows) {
    const int64_t n = std::min(rows, n_queries - first);
    int64_t first_key = 0, last_key = n_keys;
    if (windowed) {
      first_key = std::max<int64_t>(0, first - sight.window);
      last_key = std::min(n_keys, first + n + sight.window);
    } else if (causal) {
      last_key = std::min(n_keys, first + n);
    }
    const int64_t n_seen = last_key - first_key;
    const auto offset = [](const Tensor t, int dim, int64_t i) { return static_cast<std::size_t>(i) * t->nb[dim]; };
    Tensor tq = ggml_view_4d(c, queries, head_dim, n, n_head, n_samples, queries->nb[1], queries->nb[2], queries->nb[3],
                             offset(queries, 1, first));
    Tensor tk = ggml_view_4d(c, keys, head_dim, n_seen, n_kv_head, n_samples, keys->nb[1], keys->nb[2], keys->nb[3],
                             offset(keys, 1, first_key));
    Tensor tv = ggml_view_4d(c, values, n_seen, head_dim, n_kv_head, n_samples, values->nb[1], values->nb[2],
                             values->nb[3], offset(values, 0, first_key));
    Tensor mask = nullptr;
    if (windowed) mask = g.mask(MaskKind::kWindow, sight.window, n_seen, n, first - first_key);
    if (causal) mask = g.mask(MaskKind::kBefore, 0, n_seen, n, first);
    if (some_keys_hidden) mask = g.length_mask(sight.key_lengths, n_keys, n);
    Tensor scores = ggml_mul_mat(c, tk, tq);  // [n_seen, n, n_head, n_samples]
    ggml_prec_set_acc(scores, GGML_PREC_F32);
    Tensor weights = ggml_soft_max_ext(c, scores, mask, scale, 0.0f);
    Tensor tile = ggml_mul_mat(c, tv, weights);  // [head_dim, n, n_head, n_samples]
    tiles.push_back(ggml_permute(c, tile, 0, 2, 1, 3));
  }
  Tensor out = ggml_cont(c, join(c, tiles, 0, tiles.size()));  // [head_dim, n_head, n_queries, n_samples]
  return ggml_reshape_2d(c, out, head_dim * n_head, n_queries * n_samples);
}

std::size_t attend_nodes(int64_t n_queries, int64_t n_keys, int64_t n_head, int64_t n_samples) {
  const int64_t rows = std::min(tile_rows(n_queries, n_keys, n_head, n_samples), kWindowRows);
  return static_cast<std::size_t>(16 + 10 * ((n_queries + rows - 1) / rows));
}

}  // namespace hocket
