// music/blocks/attend.h: softmax attention without a cache, in F32, over tiles of queries.
//
// The scores of a whole song would take gigabytes (heads · n² · 4 bytes). Where the device has code of our own, they
// exist for some rows at a time (compute/dense_attention.h); elsewhere queries go in tiles of bounded scores, and
// windowed layers look only at the keys near their tile.
//
// Threads  const.
// Cost     n_queries · n_keys · n_head · head_dim multiply-adds, twice; windowed layers n_queries · (tile + 2 ·
//          window).
// Source   ace-step.md N-3, N-5, N-33.
#pragma once

#include <cstdint>

#include "compute/dense_attention.h"
#include "music/blocks/network_graph.h"

namespace hocket {

using Sight = KeySight;

// q [head_dim, n_head, n_queries, n_samples], k and v [head_dim, n_kv_head, n_keys, n_samples]
// → [head_dim · n_head, n_queries · n_samples].
Tensor attend(NetworkGraph& g, Tensor q, Tensor k, Tensor v, const Sight& sight);

// Nodes that attend() may make at most.
std::size_t attend_nodes(int64_t n_queries, int64_t n_keys, int64_t n_head, int64_t n_samples);

}  // namespace hocket
