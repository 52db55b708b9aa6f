#include "music/fsq/fsq_detokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "music/fsq/fsq_tokenizer.h"

namespace hocket {
namespace {

constexpr std::size_t kCodesAtOnce = 256;

}  // namespace

Result<std::unique_ptr<FsqDetokenizer>> FsqDetokenizer::load(std::shared_ptr<const DitFile> dit,
                                                             const MusicCompute& compute) {
  const DitConfig& config = dit->config();
  std::unique_ptr<FsqDetokenizer> fsq(new FsqDetokenizer(config.fsq_levels));
  fsq->compute_ = compute;
  fsq->dit_ = dit;
  TRY_ASSIGN(const LayerSizes sizes, EncoderStack::read_sizes(*dit->gguf(), "detokenizer."));
  const int64_t n = fsq->n_embd_ = sizes.n_embd;
  fsq->weights_ =
      std::make_unique<WeightSet>(std::make_shared<FileWeights>(dit->gguf()), compute.device, true, compute.kernels);
  WeightSet& w = *fsq->weights_;
  fsq->dequantise_ =
      Projection::make(w, "tokenizer.quantizer.project_out", static_cast<int64_t>(config.fsq_levels.size()), n, true);
  fsq->embed_ = Projection::make(w, "detokenizer.embed_tokens", n, n, true);
  fsq->tokens_ = w.vector("detokenizer.special_tokens", {n, kFramesPerCode});
  fsq->stack_ = EncoderStack::make(w, "detokenizer.", config.n_pooler_layer, sizes, EncoderNumbers());
  fsq->frame_out_ = Projection::make(w, "detokenizer.proj_out", n, config.n_channels, true);
  TRY(compute.load(w, "FSQ detokenizer"));
  return fsq;
}

Result<std::vector<float>> FsqDetokenizer::decode(std::span<const int32_t> codes, const CancelToken& cancel,
                                                  Taps* taps) const {
  for (const int32_t code : codes)
    if (code < 0) return Error(ErrorCode::kInvalid, fmt::format("audio code {} is negative", code), "audio_codes");
  std::vector<float> frames;
  for (std::size_t first = 0; first < codes.size(); first += kCodesAtOnce) {
    const std::span block = codes.subspan(first, std::min(kCodesAtOnce, codes.size() - first));
    const auto n = static_cast<int64_t>(block.size());
    std::vector<float> values(block.size() * levels_.n_dims());
    for (std::size_t i = 0; i < block.size(); ++i)
      levels_.values(block[i], std::span(values).subspan(i * levels_.n_dims(), levels_.n_dims()));

    const std::size_t max_nodes = stack_.max_nodes(kFramesPerCode, n) + 256;
    NetworkGraph g(compute_, max_nodes, taps);
    ggml_context* c = g.context();
    Tensor z = dequantise_.run(g, g.floats({static_cast<int64_t>(levels_.n_dims()), n}, std::move(values)));
    g.tap("z", z);
    Tensor x = ggml_reshape_3d(c, embed_.run(g, z), n_embd_, 1, n);
    x = ggml_add(c, ggml_repeat_4d(c, x, n_embd_, kFramesPerCode, n, 1), tokens_);
    x = ggml_reshape_2d(c, x, n_embd_, kFramesPerCode * n);
    x = stack_.run(g, x, kFramesPerCode, n, [](std::size_t) { return Sight(); }, "detokenizer");
    Tensor out = frame_out_.run(g, x);
    g.graph().output(out, "frames");
    TRY_ASSIGN(const std::vector<float> rows, run_once(compute_, g, out, max_nodes, cancel));
    frames.insert(frames.end(), rows.begin(), rows.end());
  }
  return frames;
}

}  // namespace hocket
