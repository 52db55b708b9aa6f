// lm/blocks/linear.h: a product with a weight and, where the file has them, a factor and an offset.
//
// Factors come with types whose blocks have a narrow range, such as NVFP4. Source: language-models.md §1.8.
#pragma once

#include "lm/step_graph.h"
#include "weights/weight_set.h"

namespace hocket {

enum class Bias { kNone, kOptional, kRequired };

struct Linear {
  Tensor weight = nullptr;  // [n_in, n_out]
  Tensor scale = nullptr;   // [1] or nullptr
  Tensor bias = nullptr;    // [n_out] or nullptr
  bool f32_sums = false;    // the result overflows half precision, in which some devices would add up

  // Takes `name`.weight, `name`.scale where the file has it and, as asked, `name`.bias.
  static Linear make(WeightSet& weights, const std::string& name, int64_t n_in, int64_t n_out, Bias bias = Bias::kNone);
  // x [n_in, n_tokens] → [n_out − first_out, n_tokens]; first_out as in matmul_from().
  Tensor run(StepGraph& g, Tensor x, int64_t first_out = 0) const;
};

}  // namespace hocket
