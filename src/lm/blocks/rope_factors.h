// lm/blocks/rope_factors.h: per-frequency divisors of rope, from the file: Llama 3's baked factors, or LongRoPE's pair
// of which one is chosen by the context size. Source: language-models.md §1.5.
#pragma once

#include "lm/step_graph.h"
#include "weights/weight_set.h"

namespace hocket {

class RopeFactors {
 public:
  // Takes rope_freqs, or rope_factors_long and rope_factors_short, where the file has them.
  void make(WeightSet& weights, const RopeSpec& rope);
  // [n_rot / 2], or nullptr for plain rope. Of LongRoPE's pair the long one when sequences may grow past the length
  // that the model was first trained for.
  Tensor get(const StepGraph& g) const;

 private:
  Tensor freqs_ = nullptr, long_ = nullptr, short_ = nullptr;
  std::size_t n_ctx_orig_ = 0;
};

}  // namespace hocket
