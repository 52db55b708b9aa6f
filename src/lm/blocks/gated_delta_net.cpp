#include "lm/blocks/gated_delta_net.h"

#include <fmt/format.h>

namespace hocket {

namespace {
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxHeadDim = 1024;
constexpr int64_t kMaxKernel = 64;
}  // namespace

Result<GatedDeltaNetSpec> GatedDeltaNetSpec::read(const HParams& hp, const Metadata& metadata, DeltaHeads heads) {
  GatedDeltaNetSpec spec;
  spec.n_embd = hp.n_embd;
  spec.eps = hp.rms_eps;
  spec.heads = heads;
  TRY_ASSIGN(spec.head_dim, metadata.integer(hp.key("ssm.state_size"), 1, kMaxHeadDim));
  TRY_ASSIGN(spec.n_k_head, metadata.integer(hp.key("ssm.group_count"), 1, kMaxHeads));
  TRY_ASSIGN(spec.n_v_head, metadata.integer(hp.key("ssm.time_step_rank"), 1, kMaxHeads));
  TRY_ASSIGN(spec.kernel, metadata.integer(hp.key("ssm.conv_kernel"), 2, kMaxKernel));
  if (spec.n_v_head % spec.n_k_head != 0)
    return Error(ErrorCode::kBadModel,
                 fmt::format("{} key heads do not divide {} value heads", spec.n_k_head, spec.n_v_head),
                 hp.key("ssm.time_step_rank"));
  TRY_ASSIGN(const int64_t inner,
             metadata.integer_or(hp.key("ssm.inner_size"), spec.head_dim * spec.n_v_head, 1, kMaxHeads * kMaxHeadDim));
  if (inner != spec.head_dim * spec.n_v_head)
    return Error(ErrorCode::kBadModel,
                 fmt::format("{} is not {} value heads of {}", inner, spec.n_v_head, spec.head_dim),
                 hp.key("ssm.inner_size"));
  return spec;
}

GatedDeltaNet GatedDeltaNet::make(WeightSet& weights, const std::string& prefix, const GatedDeltaNetSpec& spec) {
  const int64_t n_channels = spec.n_channels(), inner = spec.head_dim * spec.n_v_head;
  GatedDeltaNet net;
  net.spec_ = spec;
  net.qkv_ = Linear::make(weights, prefix + "attn_qkv", spec.n_embd, n_channels);
  net.gate_ = Linear::make(weights, prefix + "attn_gate", spec.n_embd, inner);
  net.conv_ = ShortConv::make(weights, prefix + "ssm_conv1d.weight", {spec.kernel, n_channels});
  net.dt_ = weights.vector(prefix + "ssm_dt.bias", {spec.n_v_head});
  net.a_ = weights.vector(prefix + "ssm_a", {spec.n_v_head});
  if (spec.heads == DeltaHeads::kGrouped) {
    net.beta_alpha_ = Linear::make(weights, prefix + "ssm_ba", spec.n_embd, 2 * spec.n_v_head);
  } else {
    net.beta_ = Linear::make(weights, prefix + "ssm_beta", spec.n_embd, spec.n_v_head);
    net.alpha_ = Linear::make(weights, prefix + "ssm_alpha", spec.n_embd, spec.n_v_head);
  }
  net.norm_ = RmsNorm::make(weights, prefix + "ssm_norm", spec.head_dim, spec.eps);
  net.output_ = Linear::make(weights, prefix + "ssm_out", inner, spec.n_embd);
  return net;
}

GatedDeltaNet::Gates GatedDeltaNet::gates(StepGraph& g, Tensor h) const {
  ggml_context* c = g.context();
  Tensor beta, decay;
  if (spec_.heads == DeltaHeads::kGrouped) {
    Tensor both = beta_alpha_.run(g, h);
    const int64_t r = spec_.n_v_head / spec_.n_k_head;
    const auto half = [&](int64_t first) {
      Tensor part =
          ggml_view_3d(c, both, r, spec_.n_k_head, both->ne[1], 2 * static_cast<std::size_t>(r) * sizeof(float),
                       both->nb[1], static_cast<std::size_t>(first) * sizeof(float));
      return ggml_reshape_2d(c, ggml_cont(c, part), spec_.n_v_head, both->ne[1]);
    };
    beta = half(0);
    decay = half(r);
  } else {
    beta = beta_.run(g, h);
    decay = alpha_.run(g, h);
  }
  decay = ggml_mul(c, ggml_softplus(c, ggml_add(c, decay, dt_)), a_);
  return {ggml_sigmoid(c, beta), decay};
}

Tensor GatedDeltaNet::run_group(StepGraph& g, std::size_t layer, const LaneGroup& group, Tensor qkv,
                                const Gates& gates) const {
  ggml_context* c = g.context();
  const int64_t head_dim = spec_.head_dim;
  Tensor mixed = ggml_silu(c, run_convs(g, layer, group, {conv_}, {g.lanes_of(group, qkv)})[0]);
  // `n_head` heads from channel `first` on: [head_dim, n_head, n, n_lanes].
  const auto heads = [&](int64_t first, int64_t n_head) {
    return ggml_view_4d(c, mixed, head_dim, n_head, group.n_tokens, group.n_lanes,
                        static_cast<std::size_t>(head_dim) * sizeof(float), mixed->nb[1], mixed->nb[2],
                        static_cast<std::size_t>(first) * sizeof(float));
  };
  DeltaInputs in;
  in.q = ggml_l2_norm(c, heads(0, spec_.n_k_head), spec_.eps);
  in.k = ggml_l2_norm(c, heads(head_dim * spec_.n_k_head, spec_.n_k_head), spec_.eps);
  in.v = heads(2 * head_dim * spec_.n_k_head, spec_.n_v_head);
  if (spec_.heads == DeltaHeads::kGrouped && spec_.n_v_head > spec_.n_k_head) {
    const int64_t r = spec_.n_v_head / spec_.n_k_head;
    const auto spread = [&](Tensor x) {
      x = ggml_reshape_4d(c, x, head_dim, 1, spec_.n_k_head, group.n_tokens * group.n_lanes);
      x = ggml_repeat_4d(c, x, head_dim, r, spec_.n_k_head, group.n_tokens * group.n_lanes);
      return ggml_reshape_4d(c, x, head_dim, spec_.n_v_head, group.n_tokens, group.n_lanes);
    };
    in.q = spread(in.q);
    in.k = spread(in.k);
  }
  in.gate = ggml_reshape_4d(c, g.lanes_of(group, gates.decay), 1, spec_.n_v_head, group.n_tokens, group.n_lanes);
  in.beta = ggml_reshape_4d(c, g.lanes_of(group, gates.beta), 1, spec_.n_v_head, group.n_tokens, group.n_lanes);
  return run_delta_rule(g, layer, group, in);
}

Tensor GatedDeltaNet::run(StepGraph& g, std::size_t layer, Tensor h) const {
  ggml_context* c = g.context();
  Tensor qkv = qkv_.run(g, h);
  const Gates both = gates(g, h);
  std::vector<Tensor> parts;
  for (const LaneGroup& group : g.lane_groups()) parts.push_back(run_group(g, layer, group, qkv, both));
  Tensor o = g.query_rows(g.join_lanes(parts));  // [head_dim · n_v_head, n_queries]
  o = norm_.run(g, ggml_reshape_3d(c, o, spec_.head_dim, spec_.n_v_head, o->ne[1]));
  Tensor z = gate_.run(g, g.query_rows(h));
  o = ggml_reshape_2d(c, o, z->ne[0], z->ne[1]);
  return output_.run(g, ggml_swiglu_split(c, z, o));
}

}  // namespace hocket
