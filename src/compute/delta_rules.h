// compute/delta_rules.h: our own gated delta rule (kernels/delta.h) as an operation of a graph.
//
// Threads take heads until none is left. A token has the same bits whatever the chunk, the lanes and the threads.
//
// Owns     what the operations need while the graph lives.
// Threads  one user at a time builds; operations run on all threads of a graph.
#pragma once

#include <ggml.h>

#include <deque>

#include "compute/work_queue.h"

namespace hocket {

struct KernelTable;

class DeltaRules {
 public:
  static bool can_run(const ggml_tensor* q, const ggml_tensor* k, const ggml_tensor* v, const ggml_tensor* gate);

  // Shapes and result of ggml_gated_delta_net(): q, k [S, n_k_head, n, n_lanes], v [S, n_v_head, n, n_lanes], gate [1
  // or S, n_v_head, n, n_lanes] (log decay), beta [1, n_v_head, n, n_lanes], before [S, S, n_v_head, n_lanes] (keys
  // fastest) → the outputs [S, n_v_head, n, n_lanes], then n_written states [S, S, n_v_head, n_lanes], latest first.
  ggml_tensor* run(ggml_context* context, const KernelTable& kernels, ggml_tensor* q, ggml_tensor* k, ggml_tensor* v,
                   ggml_tensor* gate, ggml_tensor* beta, ggml_tensor* before, int64_t n_written);

 private:
  struct Rule {
    const KernelTable* kernels;
    int64_t n_written;
    WorkQueue queue;
  };
  static void compute(ggml_tensor* dst, int ith, int nth, void* rule);

  std::deque<Rule> rules_;
};

}  // namespace hocket
