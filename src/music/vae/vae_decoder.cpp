#include "music/vae/vae_decoder.h"

#include <fmt/format.h>

#include <cmath>

#include "music/vae/tile_runner.h"

namespace hocket {

Result<std::unique_ptr<VaeDecoder>> VaeDecoder::load(std::shared_ptr<const GgufFile> file,
                                                     const MusicCompute& compute) {
  std::unique_ptr<VaeDecoder> vae(new VaeDecoder);
  vae->compute_ = compute;
  TRY_ASSIGN(const TensorInfo* stem, require_tensor(*file, "decoder.conv1.weight_v"));
  vae->weights_ = std::make_unique<DerivedWeights>(file, compute);
  DerivedWeights& w = *vae->weights_;
  vae->n_channels_ = stem->ne[1];
  int64_t width = stem->ne[2];
  vae->stem_ = Convolution::make(w, "decoder.conv1", vae->n_channels_, width, 7, true);
  for (std::size_t i = 0; i < kMostVaeBlocks; ++i) {
    const std::string p = fmt::format("decoder.block.{}.", i);
    const TensorInfo* up = file->find(p + "conv_t1.weight_v");
    if (!up) break;
    TRY_ASSIGN(const int64_t stride, resampling_stride(*up));
    const int64_t n_out = up->ne[1];
    vae->blocks_.push_back({Snake::make(w, p + "snake1", width),
                            UpConvolution::make(w, p + "conv_t1", width, n_out, stride), residual_units(w, p, n_out)});
    vae->samples_per_frame_ *= stride;
    width = n_out;
  }
  if (vae->blocks_.empty() || vae->samples_per_frame_ > kMusicRateHz)
    return Error(ErrorCode::kBadModel, "the decoder has no blocks, or strides that cannot be",
                 "decoder.block.0.conv_t1.weight_v");
  vae->tail_snake_ = Snake::make(w, "decoder.snake1", width);
  vae->tail_ = Convolution::make(w, "decoder.conv2", width, kAudioChannels, 7, false);
  TRY(compute.load(w, "VAE decoder"));
  return vae;
}

Tensor VaeDecoder::build(NetworkGraph& g, Tensor x) const {
  x = stem_.run(g, x);
  g.tap("stem", x);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    x = blocks_[i].up.run(g, blocks_[i].snake.run(g, x));
    if (i == 0) g.tap("block0_up", x);
    for (const ResidualUnit& unit : blocks_[i].units) x = unit.run(g, x);
    g.tap("block" + std::to_string(i), x);
  }
  return tail_.run(g, tail_snake_.run(g, x));
}

Result<StereoAudio> VaeDecoder::decode(std::span<const float> latent, const Tiling& tiling, const CancelToken& cancel,
                                       const TileProgress& progress, Taps* taps) const {
  if (latent.empty() || latent.size() % static_cast<std::size_t>(n_channels_) != 0)
    return Error(ErrorCode::kInvalid, fmt::format("a latent is whole frames of {} values", n_channels_), "src_latents");
  for (const float value : latent)
    if (!std::isfinite(value))
      return Error(ErrorCode::kInvalid, "src_latents contains non-finite values", "src_latents");

  StereoAudio audio;
  audio.rate_hz = kMusicRateHz;
  TiledNetwork network;
  network.n_frames = network.n_positions = static_cast<int64_t>(latent.size()) / n_channels_;
  network.max_nodes = kVaeMaxNodes;
  network.build = [&](NetworkGraph& g, const Tile& tile) {
    const auto first = latent.begin() + tile.window_first * n_channels_;
    const int64_t n = tile.window_last - tile.window_first;
    return build(g, g.floats({n_channels_, n}, {first, first + n * n_channels_}));
  };
  network.take = [&](const Tile& tile, const std::vector<float>& samples) {
    const int64_t first = (tile.core_first - tile.window_first) * samples_per_frame_;
    const int64_t last = (tile.core_last - tile.window_first) * samples_per_frame_;
    for (int64_t i = first; i < last; ++i) {
      audio.left.push_back(samples[static_cast<std::size_t>(2 * i)]);
      audio.right.push_back(samples[static_cast<std::size_t>(2 * i + 1)]);
    }
  };
  TRY(run_tiles(compute_, network, tiling, cancel, progress, taps));
  return audio;
}

}  // namespace hocket
