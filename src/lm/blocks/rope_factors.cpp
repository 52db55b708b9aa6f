#include "lm/blocks/rope_factors.h"

namespace hocket {

void RopeFactors::make(WeightSet& weights, const RopeSpec& rope) {
  const Shape shape{rope.n_rot / 2};
  freqs_ = weights.optional_vector("rope_freqs.weight", shape);
  long_ = weights.optional_vector("rope_factors_long.weight", shape);
  short_ = weights.optional_vector("rope_factors_short.weight", shape);
  n_ctx_orig_ = static_cast<std::size_t>(rope.n_ctx_orig);
}

Tensor RopeFactors::get(const StepGraph& g) const {
  if (freqs_) return freqs_;
  return g.n_ctx() > n_ctx_orig_ ? long_ : short_;
}

}  // namespace hocket
