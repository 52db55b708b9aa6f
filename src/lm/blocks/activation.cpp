#include "lm/blocks/activation.h"

#include <limits>

namespace hocket {

namespace {

constexpr float kOaiSlope = 1.702f, kOaiLimit = 7.0f;

}  // namespace

Tensor GatedActivation::run(StepGraph& g, Tensor gate, Tensor up) const {
  ggml_context* c = g.context();
  if (kind == Activation::kSwigluOai) return ggml_swiglu_oai(c, gate, up, kOaiSlope, kOaiLimit);
  if (clamp > kNoClamp) {
    // ggml_swiglu_clamp limits the gate before the sigmoid, which is another function.
    Tensor act = kind == Activation::kGelu ? ggml_gelu(c, gate) : ggml_silu(c, gate);
    act = ggml_clamp(c, act, -std::numeric_limits<float>::infinity(), clamp);
    return ggml_mul(c, act, ggml_clamp(c, up, -clamp, clamp));
  }
  return kind == Activation::kGelu ? ggml_geglu_split(c, gate, up) : ggml_swiglu_split(c, gate, up);
}

Tensor GatedActivation::run_fused(StepGraph& g, Tensor gate_up) const {
  ggml_context* c = g.context();
  if (kind != Activation::kSwigluOai && clamp <= kNoClamp)
    return kind == Activation::kGelu ? ggml_geglu(c, gate_up) : ggml_swiglu(c, gate_up);
  const int64_t n_ff = gate_up->ne[0] / 2;
  const auto half = [&](int64_t first) {
    Tensor view = ggml_view_3d(c, gate_up, n_ff, gate_up->ne[1], gate_up->ne[2], gate_up->nb[1], gate_up->nb[2],
                               ggml_row_size(gate_up->type, first));
    return kind == Activation::kSwigluOai ? view : ggml_cont(c, view);
  };
  return run(g, half(0), half(n_ff));
}

}  // namespace hocket
