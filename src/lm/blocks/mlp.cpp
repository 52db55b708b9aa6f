#include "lm/blocks/mlp.h"

namespace hocket {

GatedMlp GatedMlp::make(WeightSet& weights, const std::string& prefix, const MlpSpec& spec, std::string_view suffix) {
  const auto linear = [&](const char* name, int64_t n_in, int64_t n_out) {
    return Linear::make(weights, prefix + name + std::string(suffix), n_in, n_out, spec.bias);
  };
  GatedMlp mlp;
  mlp.activation_ = spec.activation;
  if (!spec.fused) mlp.gate_ = linear("ffn_gate", spec.n_embd, spec.n_ff);
  mlp.up_ = linear("ffn_up", spec.n_embd, spec.fused ? 2 * spec.n_ff : spec.n_ff);
  mlp.down_ = linear("ffn_down", spec.n_ff, spec.n_embd);
  mlp.down_.f32_sums = spec.f32_sums;
  return mlp;
}

GatedMlp GatedMlp::make(WeightSet& weights, const std::string& prefix, int64_t n_embd, int64_t n_ff,
                        Activation activation, Bias bias, bool fused) {
  return make(weights, prefix,
              {.n_embd = n_embd, .n_ff = n_ff, .activation = {.kind = activation}, .bias = bias, .fused = fused});
}

Tensor GatedMlp::run(StepGraph& g, Tensor h) const {
  Tensor up = up_.run(g, h);
  Tensor hidden = gate_.weight ? activation_.run(g, gate_.run(g, h), up) : activation_.run_fused(g, up);
  return down_.run(g, hidden);
}

}  // namespace hocket
