#include "lm/blocks/linear.h"

namespace hocket {

Linear Linear::make(WeightSet& weights, const std::string& name, int64_t n_in, int64_t n_out, Bias bias) {
  Linear linear;
  linear.weight = weights.matrix(name + ".weight", {n_in, n_out});
  linear.scale = weights.optional_vector(name + ".scale", {1});
  if (bias == Bias::kRequired) linear.bias = weights.vector(name + ".bias", {n_out});
  if (bias == Bias::kOptional) linear.bias = weights.optional_vector(name + ".bias", {n_out});
  return linear;
}

Tensor Linear::run(StepGraph& g, Tensor x) const {
  Tensor y = matmul(g.graph(), weight, x);
  if (f32_sums) ggml_prec_set_acc(y, GGML_PREC_F32);
  if (scale) y = ggml_mul(g.context(), y, scale);
  return bias ? ggml_add(g.context(), y, bias) : y;
}

}  // namespace hocket
