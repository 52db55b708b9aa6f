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

Tensor Linear::run(StepGraph& g, Tensor x, int64_t first_out) const {
  Tensor y = matmul_from(g.graph(), weight, x, first_out);
  if (f32_sums) ggml_prec_set_acc(y, GGML_PREC_F32);
  if (scale) y = ggml_mul(g.context(), y, scale);
  if (!bias) return y;
  if (first_out == 0) return ggml_add(g.context(), y, bias);
  Tensor part = ggml_view_1d(g.context(), bias, y->ne[0], static_cast<std::size_t>(first_out) * bias->nb[0]);
  return ggml_add(g.context(), y, part);
}

}  // namespace hocket
