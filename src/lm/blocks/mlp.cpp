#include "lm/blocks/mlp.h"

namespace hocket {

GatedMlp GatedMlp::make(WeightSet& weights, const std::string& prefix, int64_t n_embd, int64_t n_ff,
                        Activation activation, Bias bias, bool fused) {
  GatedMlp mlp;
  mlp.activation_ = activation;
  if (!fused) mlp.gate_ = Linear::make(weights, prefix + "ffn_gate", n_embd, n_ff, bias);
  mlp.up_ = Linear::make(weights, prefix + "ffn_up", n_embd, fused ? 2 * n_ff : n_ff, bias);
  mlp.down_ = Linear::make(weights, prefix + "ffn_down", n_ff, n_embd, bias);
  return mlp;
}

Tensor GatedMlp::run(StepGraph& g, Tensor h) const {
  ggml_context* c = g.context();
  Tensor up = up_.run(g, h);
  Tensor hidden;
  if (gate_.weight) {
    Tensor gate = gate_.run(g, h);
    hidden = activation_ == Activation::kGelu ? ggml_geglu_split(c, gate, up) : ggml_swiglu_split(c, gate, up);
  } else {
    hidden = activation_ == Activation::kGelu ? ggml_geglu(c, up) : ggml_swiglu(c, up);
  }
  return down_.run(g, hidden);
}

}  // namespace hocket
