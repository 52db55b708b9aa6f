#include "music/fsq/fsq_tokenizer.h"

#include <algorithm>

namespace hocket {
namespace {

constexpr int64_t kGroupsAtOnce = 256;

}  // namespace

Result<std::unique_ptr<FsqTokenizer>> FsqTokenizer::load(std::shared_ptr<const DitFile> dit,
                                                         const MusicCompute& compute) {
  const DitConfig& config = dit->config();
  std::unique_ptr<FsqTokenizer> fsq(new FsqTokenizer(config.fsq_levels));
  fsq->compute_ = compute;
  fsq->dit_ = dit;
  const std::string pooler = "tokenizer.attention_pooler.";
  TRY_ASSIGN(const LayerSizes sizes, EncoderStack::read_sizes(*dit->gguf(), pooler));
  const int64_t n = fsq->n_embd_ = sizes.n_embd;
  fsq->weights_ =
      std::make_unique<WeightSet>(std::make_shared<FileWeights>(dit->gguf()), compute.device, true, compute.kernels);
  WeightSet& w = *fsq->weights_;
  fsq->frame_in_ = Projection::make(w, "tokenizer.audio_acoustic_proj", config.n_channels, n, true);
  fsq->embed_ = Projection::make(w, pooler + "embed_tokens", n, n, true);
  fsq->token_ = w.vector(pooler + "special_token", {n});
  fsq->stack_ = EncoderStack::make(w, pooler, config.n_pooler_layer, sizes, EncoderNumbers());
  fsq->quantise_ =
      Projection::make(w, "tokenizer.quantizer.project_in", n, static_cast<int64_t>(config.fsq_levels.size()), true);
  TRY(compute.load(w, "FSQ tokenizer"));
  return fsq;
}

Result<std::vector<int32_t>> FsqTokenizer::encode(std::span<const float> frames, const CancelToken& cancel,
                                                  Taps* taps) const {
  const int64_t n_channels = dit_->config().n_channels;
  const auto n_frames = static_cast<int64_t>(frames.size()) / n_channels;
  if (n_frames < 1 || frames.size() % static_cast<std::size_t>(n_channels) != 0)
    return Error(ErrorCode::kInvalid, "there are no whole frames to find codes for");
  const int64_t n_groups = (n_frames + kFramesPerCode - 1) / kFramesPerCode;
  std::vector<float> padded(frames.begin(), frames.end());
  for (int64_t t = n_frames, from = 0; t < n_groups * kFramesPerCode; ++t, ++from) {
    const auto at = dit_->silence().begin() + std::min(from, dit_->n_silence_frames() - 1) * n_channels;
    padded.insert(padded.end(), at, at + n_channels);
  }

  std::vector<int32_t> codes;
  for (int64_t first = 0; first < n_groups; first += kGroupsAtOnce) {
    const int64_t n = std::min(kGroupsAtOnce, n_groups - first), n_rows = kFramesPerCode + 1;
    const std::size_t max_nodes = stack_.max_nodes(n_rows, n) + 256;
    NetworkGraph g(compute_, max_nodes, taps);
    ggml_context* c = g.context();
    const auto begin = padded.begin() + first * kFramesPerCode * n_channels;
    Tensor x = g.floats({n_channels, n * kFramesPerCode}, {begin, begin + n * kFramesPerCode * n_channels});
    x = embed_.run(g, frame_in_.run(g, x));
    x = ggml_reshape_3d(c, x, n_embd_, kFramesPerCode, n);
    Tensor token = ggml_repeat_4d(c, token_, n_embd_, 1, n, 1);
    x = ggml_reshape_2d(c, ggml_concat(c, token, x, 1), n_embd_, n_rows * n);
    x = stack_.run(g, x, n_rows, n, [](std::size_t) { return Sight(); }, "pooler");
    Tensor pooled = ggml_cont(c, ggml_view_2d(c, x, n_embd_, n, static_cast<std::size_t>(n_rows) * x->nb[1], 0));
    g.tap("pooled", pooled);
    Tensor numbers = quantise_.run(g, pooled);
    g.graph().output(numbers, "pre_quant");
    g.tap("pre_quant", numbers);
    TRY_ASSIGN(const std::vector<float> rows, run_once(compute_, g, numbers, max_nodes, cancel));
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
      codes.push_back(
          static_cast<int32_t>(levels_.code(std::span(rows).subspan(i * levels_.n_dims(), levels_.n_dims()))));
  }
  return codes;
}

}  // namespace hocket
