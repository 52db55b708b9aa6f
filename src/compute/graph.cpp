#include "compute/graph.h"

#include "base/check.h"
#include "compute/cell_attention.h"
#include "compute/delta_rules.h"
#include "compute/packed_products.h"

namespace hocket {

Graph::Graph(std::size_t max_nodes)
    : packed_products_(std::make_unique<PackedProducts>()),
      cell_attentions_(std::make_unique<CellAttentions>()),
      delta_rules_(std::make_unique<DeltaRules>()) {
  ggml_init_params params{};
  params.mem_size = ggml_tensor_overhead() * max_nodes + ggml_graph_overhead_custom(max_nodes, false);
  params.no_alloc = true;
  context_ = ggml_init(params);
  CHECK(context_ != nullptr);
  graph_ = ggml_new_graph_custom(context_, max_nodes, false);
}

Graph::~Graph() {
  ggml_free(context_);
}

Tensor Graph::input(ggml_type type, std::initializer_list<int64_t> ne, const char* name) {
  Tensor tensor = ggml_new_tensor(context_, type, static_cast<int>(ne.size()), ne.begin());
  ggml_set_name(tensor, name);
  ggml_set_input(tensor);
  return tensor;
}

void Graph::output(Tensor tensor, const char* name) {
  ggml_set_name(tensor, name);
  ggml_set_output(tensor);
  compute(tensor);
}

void Graph::compute(Tensor tensor) {
  ggml_build_forward_expand(graph_, tensor);
}

Tensor matmul(Graph& graph, Tensor weight, Tensor x) {
  return matmul_from(graph, weight, x, 0);
}

static_assert(kFirstOutStep % kGroupRows == 0);

Tensor matmul_from(Graph& graph, Tensor weight, Tensor x, int64_t first_out) {
  CHECK(first_out >= 0 && first_out < weight->ne[1] && first_out % kFirstOutStep == 0);
  if (const PackedMatrix* matrix = packed_matrix(weight))
    return graph.packed_products().product(graph.context(), weight, *matrix, x, first_out);
  if (first_out > 0) {
    CHECK(ggml_is_matrix(weight));
    weight = ggml_view_2d(graph.context(), weight, weight->ne[0], weight->ne[1] - first_out, weight->nb[1],
                          static_cast<std::size_t>(first_out) * weight->nb[1]);
  }
  return ggml_mul_mat(graph.context(), weight, x);
}

Tensor matmul_experts(Graph& graph, Tensor weights, Tensor x, Tensor ids) {
  if (const PackedMatrix* matrix = packed_matrix(weights))
    return graph.packed_products().expert_product(graph.context(), weights, *matrix, x, ids);
  return ggml_mul_mat_id(graph.context(), weights, x, ids);
}

Tensor rows(Graph& graph, Tensor table, Tensor ids) {
  if (const PackedMatrix* matrix = packed_matrix(table))
    return graph.packed_products().rows(graph.context(), table, *matrix, ids);
  return ggml_get_rows(graph.context(), table, ids);
}

}  // namespace hocket
