#include "lm/blocks/kda.h"

#include <fmt/format.h>

namespace hocket {

namespace {
constexpr int64_t kMaxHeadDim = 1024;
constexpr int64_t kMaxKernel = 64;
}  // namespace

Result<KdaSpec> KdaSpec::read(const HParams& hp, const Metadata& metadata) {
  KdaSpec spec;
  spec.n_embd = hp.n_embd;
  spec.n_head = hp.n_head[0];
  spec.eps = hp.rms_eps;
  TRY_ASSIGN(spec.head_dim, metadata.integer(hp.key("kda.head_dim"), 1, kMaxHeadDim));
  TRY_ASSIGN(spec.kernel, metadata.integer(hp.key("ssm.conv_kernel"), 2, kMaxKernel));
  for (const int64_t n_head : hp.n_head)
    if (n_head != spec.n_head || n_head < 1)
      return Error(ErrorCode::kBadModel, "KDA layers need the same number of heads, at least one, in all blocks",
                   hp.key("attention.head_count"));
  return spec;
}

Kda::LowRank Kda::LowRank::make(WeightSet& weights, const std::string& name, const KdaSpec& spec) {
  const int64_t width = spec.n_head * spec.head_dim;
  if (!spec.low_rank) return {Linear::make(weights, name + "_a", spec.n_embd, width), {}};
  return {Linear::make(weights, name + "_a", spec.n_embd, spec.head_dim),
          Linear::make(weights, name + "_b", spec.head_dim, width)};
}

Tensor Kda::LowRank::run(StepGraph& g, Tensor h) const {
  Tensor x = first.run(g, h);
  return second.weight ? second.run(g, x) : x;
}

Kda Kda::make(WeightSet& weights, const std::string& prefix, const KdaSpec& spec) {
  const int64_t width = spec.n_head * spec.head_dim;
  Kda kda;
  kda.spec_ = spec;
  kda.q_ = Linear::make(weights, prefix + "attn_q", spec.n_embd, width);
  kda.k_ = Linear::make(weights, prefix + "attn_k", spec.n_embd, width);
  kda.v_ = Linear::make(weights, prefix + "attn_v", spec.n_embd, width);
  for (const char* name : {"q", "k", "v"})
    kda.convs_.push_back(
        ShortConv::make(weights, fmt::format("{}ssm_conv1d_{}.weight", prefix, name), {spec.kernel, 1, width}));
  kda.decay_ = LowRank::make(weights, prefix + "ssm_f", spec);
  kda.dt_ = weights.vector(prefix + "ssm_dt.bias", {width});
  kda.a_ = weights.vector(prefix + "ssm_a", {1, spec.n_head});
  kda.beta_ = Linear::make(weights, prefix + "ssm_beta", spec.n_embd, spec.n_head);
  kda.gate_ = LowRank::make(weights, prefix + "ssm_g", spec);
  kda.norm_ = RmsNorm::make(weights, prefix + "ssm_norm", spec.head_dim, spec.eps);
  kda.output_ = Linear::make(weights, prefix + "attn_output", width, spec.n_embd);
  return kda;
}

Tensor Kda::log_decay(StepGraph& g, Tensor h) const {
  ggml_context* c = g.context();
  Tensor f = ggml_add(c, decay_.run(g, h), dt_);
  f = ggml_reshape_3d(c, f, spec_.head_dim, spec_.n_head, f->ne[1]);
  if (spec_.lower_bound == 0.0f) return ggml_mul(c, ggml_softplus(c, f), a_);
  return ggml_scale(c, ggml_sigmoid(c, ggml_mul(c, f, a_)), spec_.lower_bound);
}

Tensor Kda::run(StepGraph& g, std::size_t layer, Tensor h) const {
  ggml_context* c = g.context();
  const int64_t head_dim = spec_.head_dim, n_head = spec_.n_head, width = head_dim * n_head;
  Tensor q = q_.run(g, h), k = k_.run(g, h), v = v_.run(g, h);  // [width, n_tokens]
  Tensor decay = ggml_reshape_2d(c, log_decay(g, h), width, h->ne[1]);
  Tensor beta = ggml_sigmoid(c, beta_.run(g, h));  // [n_head, n_tokens]

  std::vector<Tensor> parts;
  for (const LaneGroup& group : g.lane_groups()) {
    const auto heads = [&](Tensor x, int64_t dim) {
      return ggml_reshape_4d(c, x, dim, n_head, group.n_tokens, group.n_lanes);
    };
    const std::vector<Tensor> mixed =
        run_convs(g, layer, group, convs_, {g.lanes_of(group, q), g.lanes_of(group, k), g.lanes_of(group, v)});
    DeltaInputs in;
    in.q = ggml_l2_norm(c, heads(ggml_silu(c, mixed[0]), head_dim), spec_.eps);
    in.k = ggml_l2_norm(c, heads(ggml_silu(c, mixed[1]), head_dim), spec_.eps);
    in.v = heads(ggml_silu(c, mixed[2]), head_dim);
    in.gate = heads(g.lanes_of(group, decay), head_dim);
    in.beta = heads(g.lanes_of(group, beta), 1);
    parts.push_back(run_delta_rule(g, layer, group, in));
  }
  Tensor o = g.query_rows(g.join_lanes(parts));  // [width, n_queries]
  o = norm_.run(g, ggml_reshape_3d(c, o, head_dim, n_head, o->ne[1]));
  Tensor gate = ggml_sigmoid(c, gate_.run(g, g.query_rows(h)));
  o = ggml_mul(c, ggml_reshape_2d(c, o, width, o->ne[2]), gate);
  return output_.run(g, o);
}

}  // namespace hocket
