#include "music/dit/dit.h"

#include <fmt/format.h>

#include <algorithm>

namespace hocket {

Result<std::unique_ptr<Dit>> Dit::load(std::shared_ptr<const DitFile> dit, const MusicCompute& compute) {
  auto source = std::make_shared<FileWeights>(dit->gguf());
  return load(std::move(dit), std::move(source), compute);
}

Result<std::unique_ptr<Dit>> Dit::load(std::shared_ptr<const DitFile> dit, std::shared_ptr<WeightSource> source,
                                       const MusicCompute& compute) {
  const DitConfig& config = dit->config();
  const int64_t n_embd = config.layer.n_embd;
  std::unique_ptr<Dit> net(new Dit);
  net->compute_ = compute;
  net->weights_ = std::make_unique<WeightSet>(std::move(source), compute.device, true, compute.kernels);
  WeightSet& w = *net->weights_;
  net->time_ = TimestepEmbedder::make(w, "decoder.time_embed", n_embd);
  net->time_r_ = TimestepEmbedder::make(w, "decoder.time_embed_r", n_embd);
  // Convolution kernels: in F32, because their rows are no whole blocks.
  net->in_weight_ = w.vector("decoder.proj_in.1.weight", {config.patch, 3 * config.n_channels, n_embd});
  net->in_bias_ = w.vector("decoder.proj_in.1.bias", {n_embd});
  net->condition_ = Projection::make(w, "decoder.condition_embedder", dit->n_enc(), n_embd, true);
  net->out_norm_ = RmsScale::make(w, "decoder.norm_out", n_embd, config.eps);
  net->out_table_ = w.vector("decoder.scale_shift_table", {n_embd, 2});
  net->out_weight_ = w.vector("decoder.proj_out.1.weight", {config.patch, config.n_channels, n_embd});
  net->out_bias_ = w.vector("decoder.proj_out.1.bias", {config.n_channels});
  for (std::size_t il = 0; il < config.n_layer; ++il) {
    const std::string p = "decoder.layers." + std::to_string(il) + ".";
    net->layers_.push_back({RmsScale::make(w, p + "self_attn_norm", n_embd, config.eps),
                            RmsScale::make(w, p + "cross_attn_norm", n_embd, config.eps),
                            RmsScale::make(w, p + "mlp_norm", n_embd, config.eps),
                            AttentionBlock::make(w, p + "self_attn.", config.layer, config.eps),
                            AttentionBlock::make(w, p + "cross_attn.", config.layer, config.eps),
                            SwigluBlock::make(w, p + "mlp.", config.layer),
                            w.vector(p + "scale_shift_table", {n_embd, 6})});
  }
  net->dit_ = std::move(dit);
  TRY(compute.load(w, "transformer"));
  return net;
}

namespace {

// Row i of a table [n, rows] as a vector [n].
Tensor row(NetworkGraph& g, Tensor table, int64_t i) {
  return ggml_view_1d(g.context(), table, table->ne[0], static_cast<std::size_t>(i) * table->nb[1]);
}

// norm(h) ⊙ (1 + scale) + shift
Tensor modulate(NetworkGraph& g, Tensor normed, Tensor scale, Tensor shift) {
  ggml_context* c = g.context();
  return ggml_add(c, ggml_mul(c, normed, ggml_scale_bias(c, scale, 1.0f, 1.0f)), shift);
}

}  // namespace

Tensor Dit::run_layer(NetworkGraph& g, std::size_t il, Tensor h, Tensor time, Tensor condition, Tensor positions,
                      const std::vector<int64_t>& enc_lengths) const {
  ggml_context* c = g.context();
  const Layer& layer = layers_[il];
  const auto n_samples = static_cast<int64_t>(enc_lengths.size());
  const int64_t n = h->ne[1] / n_samples, n_enc_rows = condition->ne[1] / n_samples;
  const auto tap = [&](const char* name, Tensor t) {
    if (il == 0) g.tap(name, t);
  };
  Tensor m = ggml_add(c, layer.table, time);  // shift, scale, gate of attention; shift, scale, gate of the MLP
  Tensor u = modulate(g, layer.self_norm.run(g, h), row(g, m, 1), row(g, m, 0));
  tap("layer0_sa_input", u);
  const Sight sight = il % 2 == 0 ? Sight{Sight::Kind::kWindow, config().window, {}} : Sight{};
  Tensor a = layer.self.self(g, u, n, n_samples, positions, config().rope_base, sight);
  tap("layer0_sa_output", a);
  h = ggml_add(c, h, ggml_mul(c, a, row(g, m, 2)));
  h = ggml_add(c, h,
               layer.cross.cross(g, layer.cross_norm.run(g, h), n, condition, n_enc_rows, n_samples,
                                 Sight{Sight::Kind::kAll, 0, enc_lengths}));
  tap("layer0_after_cross_attn", h);
  Tensor v = modulate(g, layer.mlp_norm.run(g, h), row(g, m, 4), row(g, m, 3));
  h = ggml_add(c, h, ggml_mul(c, layer.mlp.run(g, v), row(g, m, 5)));
  g.tap("hidden_after_layer" + std::to_string(il), h);
  return h;
}

Result<std::unique_ptr<DitPass>> DitPass::create(const Dit& dit, const DitShape& shape, Taps* taps) {
  const DitConfig& config = dit.config();
  const auto n_samples = static_cast<int64_t>(shape.enc_lengths.size());
  if (n_samples < 1 || shape.n_frames < 1 || shape.n_frames % config.patch != 0)
    return Error(ErrorCode::kInvalid,
                 fmt::format("{} samples of {} frames: at least one, and a multiple of {} frames, is needed", n_samples,
                             shape.n_frames, config.patch));
  for (const int64_t length : shape.enc_lengths)
    if (length < 1 || length > shape.n_enc_rows)
      return Error(ErrorCode::kInvalid, fmt::format("a conditioning of {} rows among {}", length, shape.n_enc_rows));
  const int64_t n_positions = shape.n_frames / config.patch;
  const std::size_t layer_nodes = 96 + attend_nodes(n_positions, n_positions, config.layer.n_head, n_samples) +
                                  attend_nodes(n_positions, shape.n_enc_rows, config.layer.n_head, n_samples);
  const std::size_t max_nodes = 512 + config.n_layer * layer_nodes;
  std::unique_ptr<DitPass> pass(new DitPass(dit, shape, max_nodes, taps));
  pass->build();
  TRY_ASSIGN(pass->executor_, NetworkExecutor::create(dit.compute_, max_nodes));
  if (auto allocated = pass->executor_->allocate(pass->graph_); !allocated.ok())
    return Error(ErrorCode::kOutOfMemory,
                 fmt::format("not enough memory for the DiT: {} samples of {} frames", n_samples, shape.n_frames));
  return pass;
}

void DitPass::build() {
  NetworkGraph& g = graph_;
  ggml_context* c = g.context();
  const DitConfig& config = dit_.config();
  const int64_t n_embd = config.layer.n_embd, n_channels = config.n_channels, patch = config.patch;
  const auto n_samples = static_cast<int64_t>(shape_.enc_lengths.size());
  const int64_t n_positions = shape_.n_frames / patch;
  const auto zeros = [](int64_t n) { return std::vector<float>(static_cast<std::size_t>(n)); };

  sinusoid_ = g.floats({kSinusoidWidth}, zeros(kSinusoidWidth));
  input_ = g.floats({3 * n_channels * patch, n_positions * n_samples},
                    zeros(3 * n_channels * patch * n_positions * n_samples));
  conditioning_ =
      g.floats({dit_.n_enc(), shape_.n_enc_rows * n_samples}, zeros(dit_.n_enc() * shape_.n_enc_rows * n_samples));
  std::vector<int32_t> steps(static_cast<std::size_t>(n_positions));
  for (std::size_t s = 0; s < steps.size(); ++s) steps[s] = static_cast<int32_t>(s);
  Tensor positions = g.integers({n_positions}, std::move(steps));

  // All samplers use the present time as the reference time, so that the second embedder sees zero.
  const auto now = dit_.time_.run(g, sinusoid_, "t");
  const auto ago = dit_.time_r_.run(g, g.floats({kSinusoidWidth}, timestep_sinusoid(0)), "r");
  Tensor embedding = ggml_add(c, now.embedding, ago.embedding);
  Tensor time = ggml_reshape_2d(c, ggml_add(c, now.projection, ago.projection), n_embd, 6);
  g.tap("temb", embedding);
  g.tap("tproj", time);

  // The frames of a patch are neighbours in memory: [patch, channels, n_embd] → [channels · patch, n_embd].
  Tensor in =
      ggml_reshape_2d(c, ggml_cont(c, ggml_permute(c, dit_.in_weight_, 1, 0, 2, 3)), 3 * n_channels * patch, n_embd);
  Tensor h = ggml_add(c, matmul(g.graph(), in, input_), dit_.in_bias_);
  g.tap("hidden_after_proj_in", h);
  Tensor condition = dit_.condition_.run(g, conditioning_);
  g.tap("enc_after_cond_emb", condition);
  for (std::size_t il = 0; il < config.n_layer; ++il)
    h = dit_.run_layer(g, il, h, time, condition, positions, shape_.enc_lengths);

  Tensor shift = ggml_add(c, row(g, dit_.out_table_, 0), embedding);
  Tensor scale = ggml_add(c, row(g, dit_.out_table_, 1), embedding);
  Tensor y = modulate(g, dit_.out_norm_.run(g, h), scale, shift);
  // [patch, channels, n_embd] → [n_embd, channels · patch], frames slowest.
  Tensor out =
      ggml_reshape_2d(c, ggml_cont(c, ggml_permute(c, dit_.out_weight_, 2, 1, 0, 3)), n_embd, n_channels * patch);
  Tensor frames = ggml_reshape_2d(c, matmul(g.graph(), out, y), n_channels, shape_.n_frames * n_samples);
  velocity_ = ggml_add(c, frames, dit_.out_bias_);
  g.graph().output(velocity_, "velocity");
}

void DitPass::set_context(std::span<const float> context) {
  CHECK(context.size() ==
        static_cast<std::size_t>(2 * dit_.config().n_channels * shape_.n_frames) * shape_.enc_lengths.size());
  context_.assign(context.begin(), context.end());
}

void DitPass::set_conditioning(std::span<const float> conditioning) {
  graph_.set(conditioning_, {conditioning.begin(), conditioning.end()});
}

Result<std::vector<float>> DitPass::run(std::span<const float> x, float t, const CancelToken& cancel) {
  const auto n_channels = static_cast<std::size_t>(dit_.config().n_channels);
  const std::size_t n_frames = static_cast<std::size_t>(shape_.n_frames) * shape_.enc_lengths.size();
  CHECK(x.size() == n_channels * n_frames && context_.size() == 2 * x.size());
  std::vector<float> rows;
  rows.reserve(3 * x.size());
  for (std::size_t i = 0; i < n_frames; ++i) {
    const auto context = context_.begin() + static_cast<std::ptrdiff_t>(2 * n_channels * i);
    rows.insert(rows.end(), context, context + static_cast<std::ptrdiff_t>(2 * n_channels));
    const auto noisy = x.subspan(n_channels * i, n_channels);
    rows.insert(rows.end(), noisy.begin(), noisy.end());
  }
  graph_.set(input_, std::move(rows));
  std::vector<float> sinusoid = timestep_sinusoid(t);
  if (taps_) (*taps_)["sinusoidal_t"] = sinusoid;
  graph_.set(sinusoid_, std::move(sinusoid));
  return executor_->run(graph_, velocity_, cancel);
}

}  // namespace hocket
