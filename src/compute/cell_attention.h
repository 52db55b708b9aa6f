// compute/cell_attention.h: our own attention over the cells of a cache, as an operation of a graph.
//
// The largest pieces of work are the rows of queries that read one head of the cache; threads take them until none is
// left. Only cells that one of a piece's queries sees are read, in the order that the caller gives: with that of the
// positions, a row has the same bits whatever the batch, the threads and the places of its sequence among the cells
// (compute/kernels/attention.h).
//
// Owns     what the operations need while the graph lives.
// Threads  one user at a time builds; operations run on all threads of a graph.
// Cost     each thread that runs one keeps its scratch: 196 bytes a cell of the longest context, and some KiB.
#pragma once

#include <ggml.h>

#include <deque>

#include "compute/work_queue.h"

namespace hocket {

struct KernelTable;

struct CellAttentionOptions {
  float scale = 1;
  float softcap = 0;             // 0: none
  ggml_tensor* sinks = nullptr;  // F32 [n_head]: a score of each head that only joins the denominator
  // I32 [n_kv]: the cells in the order in which they are added up; nullptr, or −1 in front: as they lie.
  ggml_tensor* order = nullptr;
};

class CellAttentions {
 public:
  // Whether the kernels have it for these types: q F32; k and v F32, F16 or BF16.
  static bool can_attend(const ggml_tensor* q, const ggml_tensor* k, const ggml_tensor* v);

  // softmax(scale · q·kᵀ + mask) · v: q [dim_k, n_queries, n_head], k [dim_k, n_kv, n_kv_head], v [dim_v, n_kv,
  // n_kv_head], mask F16 [n_kv, n_queries] → [dim_v, n_head, n_queries]. Rows of each may lie anywhere.
  ggml_tensor* attend(ggml_context* context, const KernelTable& kernels, ggml_tensor* q, ggml_tensor* k, ggml_tensor* v,
                      ggml_tensor* mask, const CellAttentionOptions& options);

 private:
  struct Attention {
    const KernelTable* kernels;
    float scale, softcap;
    bool has_sinks, has_order;
    WorkQueue queue;
  };
  static void run(ggml_tensor* dst, int ith, int nth, void* attention);

  std::deque<Attention> attentions_;
};

}  // namespace hocket
