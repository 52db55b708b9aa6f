// lm/step_graph.h: what blocks see while the graph of one step is built.
//
// The framework makes the inputs (positions, cells, masks, wanted rows); blocks use them through this class and never
// index a cache themselves. Shapes are fixed by StepShape, everything else is data that is filled in before each run,
// so one graph serves many steps.
//
// Owns     the graph. Borrows the cache.
// Threads  one user at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "compute/graph.h"
#include "lm/hparams.h"
#include "memory/kv_cache.h"

namespace hocket {

struct StepShape {
  std::size_t n_tokens = 1;
  std::size_t n_outputs = 1;      // rows that pass the last layer; ≥ 1
  std::vector<std::size_t> n_kv;  // per pool of the cache
  bool hidden = false;            // the result is the state after the final norm, not logits
  bool operator==(const StepShape&) const = default;
};

class StepGraph {
 public:
  StepGraph(const StepShape& shape, const KvCache& cache, bool flash_attention, std::size_t max_nodes);
  std::size_t n_ctx() const { return cache_.n_cells(); }  // how long a sequence may grow

  Graph& graph() { return graph_; }
  ggml_context* context() { return graph_.context(); }
  const StepShape& shape() const { return shape_; }

  // ---- for the framework
  void set_last_layer(bool last) { last_layer_ = last; }
  Tensor tokens() const { return tokens_; }                      // I32 [n_tokens]
  Tensor positions() const { return positions_; }                // I32 [n_tokens]
  Tensor output_rows() const { return output_rows_; }            // I32 [n_outputs], nullptr when every row is wanted
  Tensor output_positions() const { return output_positions_; }  // I32 [n_outputs], nullptr as above
  Tensor cells(std::size_t pool) const { return pools_[pool].cells; }              // I64 [n_tokens]
  Tensor mask(std::size_t pool) const { return pools_[pool].mask; }                // F16 [n_kv, n_tokens]
  Tensor output_mask(std::size_t pool) const { return pools_[pool].output_mask; }  // F16 [n_kv, n_outputs], or nullptr
  Tensor result() const { return result_; }
  void set_result(Tensor result);

  // ---- for blocks
  // In the last layer only the wanted rows go on: the queries of attention are cut to them.
  // x [n, n_tokens] → [n, n_outputs] in the last layer, else x.
  Tensor query_rows(Tensor x);
  Tensor query_positions() const { return trims() ? output_positions_ : positions_; }
  // x + y, where y may have fewer rows than x (see query_rows).
  Tensor residual(Tensor x, Tensor y);
  // Rotates x [head_dim, n_head, n] at the given positions; factors may be nullptr.
  Tensor rope(Tensor x, Tensor positions, const RopeSpec& spec, Tensor factors);
  // Writes k, v [head_dim, n_kv_head, n_tokens] of a layer to its cells, then attends.
  // q [head_dim, n_head, n_queries] → [head_dim_v · n_head, n_queries]. sinks [n_head] or nullptr: see AttentionSpec.
  Tensor attend(std::size_t layer, Tensor q, Tensor k, Tensor v, float scale, float softcap, Tensor sinks = nullptr);

 private:
  struct PoolInputs {
    Tensor cells, mask, output_mask;
  };
  bool trims() const { return last_layer_ && output_rows_ != nullptr; }
  Tensor attend_flash(Tensor q, Tensor k, Tensor v, Tensor mask, float scale, float softcap, Tensor sinks);
  Tensor attend_exact(Tensor q, Tensor k, Tensor v, Tensor mask, float scale, float softcap, Tensor sinks);

  StepShape shape_;
  Graph graph_;
  const KvCache& cache_;
  bool flash_attention_;
  bool last_layer_ = false;
  Tensor tokens_, positions_;
  Tensor output_rows_ = nullptr, output_positions_ = nullptr;
  std::vector<PoolInputs> pools_;
  Tensor result_ = nullptr;
};

}  // namespace hocket
