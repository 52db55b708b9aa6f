#include "music/blocks/projection.h"

namespace hocket {

Projection Projection::make(WeightSet& weights, const std::string& name, int64_t n_in, int64_t n_out, bool with_bias) {
  Projection p;
  p.weight = weights.matrix(name + ".weight", {n_in, n_out});
  if (with_bias) p.bias = weights.vector(name + ".bias", {n_out});
  return p;
}

Tensor Projection::run(NetworkGraph& g, Tensor x) const {
  Tensor y = matmul(g.graph(), weight, x);
  return bias ? ggml_add(g.context(), y, bias) : y;
}

RmsScale RmsScale::make(WeightSet& weights, const std::string& name, int64_t n, float eps) {
  return {weights.vector(name + ".weight", {n}), eps};
}

Tensor RmsScale::run(NetworkGraph& g, Tensor x) const {
  return ggml_mul(g.context(), ggml_rms_norm(g.context(), x, eps), weight);
}

}  // namespace hocket
