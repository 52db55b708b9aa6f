// compute/graph.h: a graph under construction, and the one place where products with weights are made.
//
// Tensors belong to the graph's context and carry no data until an Executor has allocated the graph. Shapes are in ggml
// order, fastest first.
//
// Owns     the tensors and the node list.
// Threads  one user at a time.
// Errors   ggml asserts on shapes it dislikes: what comes from files and requests is checked before a graph is built.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <memory>

namespace hocket {

class CellAttentions;
class DeltaRules;
class PackedProducts;

using Tensor = ggml_tensor*;

class Graph {
 public:
  explicit Graph(std::size_t max_nodes);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  ggml_context* context() const { return context_; }
  ggml_cgraph* nodes() const { return graph_; }

  // A tensor that the caller fills before each run.
  Tensor input(ggml_type type, std::initializer_list<int64_t> ne, const char* name);
  // Keeps a tensor's data after the run.
  void output(Tensor tensor, const char* name);
  // Adds a tensor and what it needs to the nodes to compute, now (in order of the calls).
  void compute(Tensor tensor);
  // Operations of our own, which live as long as the graph.
  PackedProducts& packed_products() { return *packed_products_; }
  CellAttentions& cell_attentions() { return *cell_attentions_; }
  DeltaRules& delta_rules() { return *delta_rules_; }

 private:
  ggml_context* context_;
  ggml_cgraph* graph_;
  std::unique_ptr<PackedProducts> packed_products_;
  std::unique_ptr<CellAttentions> cell_attentions_;
  std::unique_ptr<DeltaRules> delta_rules_;
};

// weight [n_in, n_out] · x [n_in, n_tokens, …] → [n_out, n_tokens, …]. Every product with a weight goes through here:
// packed matrices (packed_matrix.h) have our own kernels, the rest ggml's.
Tensor matmul(Graph& graph, Tensor weight, Tensor x);

// The same with the weight's outputs from first_out on: → [n_out − first_out, n_tokens, …]. first_out must be a
// multiple of kFirstOutStep and less than n_out. The values are those of matmul(), bit by bit with packed matrices.
Tensor matmul_from(Graph& graph, Tensor weight, Tensor x, int64_t first_out);
constexpr int64_t kFirstOutStep = 16;

// weights [n_in, n_out, n_expert], x [n_in, 1 or n_used, n_tokens], ids I32 [n_used, n_tokens] → [n_out, n_used,
// n_tokens]. A token's ids must differ.
Tensor matmul_experts(Graph& graph, Tensor weights, Tensor x, Tensor ids);

// Rows ids [n_ids] I32 of a table [n_embd, n_rows] → [n_embd, n_ids] F32. Tables of weights are looked up through here:
// a tied one may be a packed matrix.
Tensor rows(Graph& graph, Tensor table, Tensor ids);

}  // namespace hocket
