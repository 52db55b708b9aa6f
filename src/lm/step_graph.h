// lm/step_graph.h: what blocks see while the graph of one step is built.
//
// The framework makes the inputs (positions, cells, masks, lanes, wanted rows); blocks use them through this class and
// never index a memory themselves. Shapes are fixed by StepShape, everything else is data that is filled in before each
// run, so one graph serves many steps.
//
// Layers are named by their index in the whole model, whatever part of it this graph runs.
//
// Owns     the graph. Borrows the memory.
// Threads  one user at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "compute/graph.h"
#include "lm/hparams.h"
#include "lm/runner.h"
#include "memory/model_memory.h"

namespace hocket {

struct KernelTable;

// Neighbouring sequences of a step that have equally many tokens in it.
struct LaneShape {
  std::size_t n_tokens = 1;  // of each lane
  std::size_t n_lanes = 1;
  std::size_t n_written = 1;  // states that each lane leaves
  bool operator==(const LaneShape&) const = default;
};

struct StepShape {
  std::size_t n_tokens = 1;
  std::size_t n_outputs = 1;      // rows that pass the head; ≥ 1
  std::vector<std::size_t> n_kv;  // per pool of the cache
  std::vector<LaneShape> lanes;   // empty when no layer is recurrent
  StepOutput output = StepOutput::kLogits;
  int64_t first_logit = 0;  // the token from which on the head computes logits
  bool operator==(const StepShape&) const = default;
};

struct StepGraphOptions {
  bool flash_attention = true;
  std::size_t max_nodes = 0;
  std::size_t first_layer = 0;  // the layer that the memory's first entry belongs to
  std::size_t n_ctx = 0;        // how long a sequence may grow
  int64_t n_activation = 0;     // width of the activations that the step starts from; 0: from tokens alone
  const KernelTable* kernels =
      nullptr;  // of attention over F32, F16 and BF16 cells and of delta rules; nullptr: ggml's
};

// Lanes of one shape within a graph.
struct LaneGroup {
  int64_t first_token = 0;  // of the batch
  int64_t n_tokens = 0, n_lanes = 0, n_written = 0;
  Tensor rows_in = nullptr;   // I32 [n_lanes]
  Tensor rows_out = nullptr;  // I64 [n_lanes · n_written], lanes fastest; [s]: states s tokens before the end
};

struct AttendOptions {
  float scale = 1.0f;
  float softcap = 0.0f;
  Tensor sinks = nullptr;  // F32 [n_head]: a logit of each head that only joins the denominator
  Tensor mask = nullptr;   // F16 [n_kv, n_queries] instead of the layer's own
  Tensor order = nullptr;  // set by attend(): see cell_order()
};

class StepGraph {
 public:
  StepGraph(const StepShape& shape, const ModelMemory& memory, const StepGraphOptions& options);
  std::size_t n_ctx() const { return options_.n_ctx; }       // how long a sequence may grow
  std::size_t n_cells() const { return memory_.n_cells(); }  // of the cache

  Graph& graph() { return graph_; }
  ggml_context* context() { return graph_.context(); }
  const StepShape& shape() const { return shape_; }

  // ---- for the framework
  // Whether only the wanted rows go on from the layer that is built next.
  void set_trimming(bool trim) { trimming_ = trim; }
  Tensor tokens() const { return tokens_; }                      // I32 [n_tokens]
  Tensor activations() const { return activations_; }            // F32 [n_activation, n_tokens], or nullptr
  Tensor positions() const { return positions_; }                // I32 [n_tokens]
  Tensor output_rows() const { return output_rows_; }            // I32 [n_outputs], nullptr when every row is wanted
  Tensor output_positions() const { return output_positions_; }  // I32 [n_outputs], nullptr as above
  Tensor cells(std::size_t pool) const { return pools_[pool].cells; }              // I64 [n_tokens]
  Tensor mask(std::size_t pool) const { return pools_[pool].mask; }                // F16 [n_kv, n_tokens]
  Tensor cell_order(std::size_t pool) const { return pools_[pool].order; }         // I32 [n_kv]: cells by position
  Tensor output_mask(std::size_t pool) const { return pools_[pool].output_mask; }  // F16 [n_kv, n_outputs], or nullptr
  Tensor result() const { return result_; }  // [n_vocab − first_logit or n_embd, n_outputs]
  Tensor hidden() const { return hidden_; }  // [n_embd, n_tokens], or nullptr
  // Whether attention and recurrence so far give a row the same bits whatever else is in the step.
  bool works_by_rows() const { return works_by_rows_; }
  void set_result(Tensor result);
  void set_hidden(Tensor hidden);

  // ---- for blocks
  // In the last layer only the wanted rows go on: the queries of attention are cut to them.
  // x [n, n_tokens] → [n, n_outputs] in the last layer, else x.
  Tensor query_rows(Tensor x);
  Tensor query_positions() const { return trims() ? output_positions_ : positions_; }
  // x + y, where y may have fewer rows than x (see query_rows).
  Tensor residual(Tensor x, Tensor y);
  // Rotates x [head_dim, n_head, n] at the given positions; factors may be nullptr.
  Tensor rope(Tensor x, Tensor positions, const RopeSpec& spec, Tensor factors);
  // Writes k, v [head_dim, n_kv_head, n_tokens] of a layer to its cells, then attends. Latent layers have no v; without
  // k nothing is written and the layer's rows are read as they are.
  // q [head_dim, n_head, n_queries] → [head_dim_v · n_head, n_queries].
  Tensor attend(std::size_t layer, Tensor q, Tensor k, Tensor v, const AttendOptions& options);
  // Writes the latents and rotated keys of a latent layer, [row width, 1, n_tokens]; all that the step sees, as the
  // cache has them → [row width, n_kv].
  Tensor latent_rows(std::size_t layer, Tensor rows);
  // Attends to given keys [head_dim, n_kv, n_kv_head] and values [head_dim_v, n_kv, n_kv_head] of attention_type().
  // options.mask must be set. q [head_dim, n_head, n_queries] → [head_dim_v · n_head, n_queries].
  Tensor attend_to(Tensor q, Tensor keys, Tensor values, const AttendOptions& options);
  ggml_type attention_type() const { return options_.flash_attention ? GGML_TYPE_F16 : GGML_TYPE_F32; }
  // Writes index keys [n_index, n_tokens] of a layer; all of them that the step sees → [n_index, n_kv].
  Tensor index_keys(std::size_t layer, Tensor keys);
  // The mask of a layer for its queries: F16 [n_kv, n_queries].
  Tensor query_mask(std::size_t layer) const;
  // A value that layers of this step share, nullptr until some layer has set it.
  Tensor& shared(std::string_view name) { return shared_[name]; }

  // ---- for recurrent blocks
  const std::vector<LaneGroup>& lane_groups() const { return lane_groups_; }
  // x [n, n_tokens] → the group's part [n, n_tokens of a lane, n_lanes].
  Tensor lanes_of(const LaneGroup& group, Tensor x);
  // One [n, n_tokens of a lane, n_lanes] of each group → [n, n_tokens].
  Tensor join_lanes(const std::vector<Tensor>& parts);
  // What the group's sequences had before this step: [n_conv, n_lanes] and [n_state, n_lanes].
  Tensor conv_before(std::size_t layer, const LaneGroup& group);
  Tensor state_before(std::size_t layer, const LaneGroup& group);
  // What they have after it: [n_conv or n_state, n_lanes · n_written], in the order of rows_out.
  void set_conv(std::size_t layer, const LaneGroup& group, Tensor rows);
  void set_state(std::size_t layer, const LaneGroup& group, Tensor rows);
  // As ggml_gated_delta_net(): one tensor with the outputs of all tokens, then n_written states, latest first.
  Tensor delta_rule(Tensor q, Tensor k, Tensor v, Tensor gate, Tensor beta, Tensor before, int64_t n_written);

 private:
  struct PoolInputs {
    Tensor cells, order, mask, output_mask;
  };
  bool trims() const { return trimming_ && output_rows_ != nullptr; }
  std::size_t local(std::size_t layer) const { return layer - options_.first_layer; }
  void write_rows(std::size_t layer, Tensor table, Tensor rows);
  Tensor attend_flash(Tensor q, Tensor k, Tensor v, const AttendOptions& options);
  Tensor attend_exact(Tensor q, Tensor k, Tensor v, const AttendOptions& options);

  StepShape shape_;
  StepGraphOptions options_;
  Graph graph_;
  const ModelMemory& memory_;
  bool trimming_ = false;
  bool works_by_rows_ = true;
  Tensor tokens_, positions_, activations_ = nullptr;
  Tensor output_rows_ = nullptr, output_positions_ = nullptr;
  std::vector<PoolInputs> pools_;
  std::vector<LaneGroup> lane_groups_;
  std::map<std::string_view, Tensor> shared_;
  Tensor result_ = nullptr, hidden_ = nullptr;
};

}  // namespace hocket
