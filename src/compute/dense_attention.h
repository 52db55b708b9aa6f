// compute/dense_attention.h: our own attention without a cache: all queries over all keys of a text or a song, as an
// operation of a graph.
//
// The kernels are those of the cells of a cache (compute/kernels/attention.h). What a query sees follows from its place
// alone, so that no mask of queries times keys is ever made; scores are held for 32 rows at a time.
//
// Owns     what the operations need while the graph lives.
// Threads  one user at a time builds; operations run on all threads of a graph.
// Cost     2 · head_dim multiply-adds for each query, head and key in sight; each thread keeps its scratch: 128 bytes a
//          key, and some KiB.
#pragma once

#include <ggml.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "compute/work_queue.h"

namespace hocket {

struct KernelTable;

// Query i and key i are the same place.
struct KeySight {
  enum class Kind { kAll, kBefore, kWindow } kind = Kind::kAll;
  int64_t window = 0;                // kWindow: keys at most so far away
  std::vector<int64_t> key_lengths;  // kAll: how many keys each sample has; empty: all of them
};

class DenseAttentions {
 public:
  // q F32 [head_dim, n_head, n_queries, n_samples], k and v F32 [head_dim, n_kv_head, n_keys, n_samples]; rows may lie
  // anywhere → [head_dim · n_head, n_queries · n_samples].
  ggml_tensor* attend(ggml_context* context, const KernelTable& kernels, ggml_tensor* q, ggml_tensor* k, ggml_tensor* v,
                      const KeySight& sight, float scale);

 private:
  struct Attention {
    const KernelTable* kernels = nullptr;
    float scale = 1;
    KeySight sight;
    std::vector<uint16_t> mask;  // f16; a query's part begins where its place says
    WorkQueue queue;
  };
  static void run(ggml_tensor* dst, int ith, int nth, void* attention);

  std::deque<Attention> attentions_;
};

}  // namespace hocket
