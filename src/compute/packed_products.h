// compute/packed_products.h: products with packed matrices as operations of a graph.
//
// A product has two steps with a barrier between them: the activations are rounded to 8 bits, once for all products
// that want the same form of the same tensor, then threads take blocks of rows until none is left. Which thread
// computes what changes nothing in the result.
//
// Experts have a step before these: the columns of a batch are sorted by expert, so that each expert's weights are read
// once.
//
// Owns     what the operations need while the graph lives.
// Threads  one user at a time builds; operations run on all threads of a graph.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <deque>
#include <vector>

#include "compute/packed_matrix.h"
#include "compute/work_queue.h"

namespace hocket {

class PackedProducts {
 public:
  // As matmul_from(), matmul_experts() and rows() of graph.h; `weight` stands for `matrix`.
  ggml_tensor* product(ggml_context* context, ggml_tensor* weight, const PackedMatrix& matrix, ggml_tensor* x,
                       int64_t first_out);
  ggml_tensor* expert_product(ggml_context* context, ggml_tensor* weight, const PackedMatrix& matrix, ggml_tensor* x,
                              ggml_tensor* ids);
  ggml_tensor* rows(ggml_context* context, ggml_tensor* weight, const PackedMatrix& matrix, ggml_tensor* ids);

 private:
  struct Product {
    explicit Product(const PackedMatrix& whole) : matrix(whole) {}
    PackedMatrix matrix;  // of a plain product the part that is wanted
    WorkQueue queue;
  };
  struct Rounding {
    const KernelTable* kernels = nullptr;
    ActivationForm form = {};
    int64_t n_expert = 0;
    WorkQueue queue;
  };
  struct Rounded {
    ggml_tensor* x;
    ggml_tensor* sorting;  // of the experts, or nullptr
    const KernelTable* kernels;
    ActivationForm form;
    ggml_tensor* result;
  };

  ggml_tensor* rounded(ggml_context* context, const PackedMatrix& matrix, ggml_tensor* x, ggml_tensor* sorting);
  Rounding& add_rounding(const PackedMatrix& matrix, const ActivationForm& form);
  ggml_tensor* sorted(ggml_context* context, const PackedMatrix& matrix, ggml_tensor* ids);

  static void round_columns(ggml_tensor* dst, int ith, int nth, void* rounding);
  static void round_sorted(ggml_tensor* dst, int ith, int nth, void* rounding);
  static void sort_by_expert(ggml_tensor* dst, int ith, int nth, void* rounding);
  static void multiply(ggml_tensor* dst, int ith, int nth, void* product);
  static void look_up(ggml_tensor* dst, int ith, int nth, void* matrix);
  static void multiply_experts(ggml_tensor* dst, int ith, int nth, void* product);

  std::deque<Product> products_;
  std::deque<Rounding> roundings_;
  std::vector<Rounded> rounded_;
};

}  // namespace hocket
