#include "music/vae/vae_encoder.h"

#include <fmt/format.h>

#include "music/vae/tile_runner.h"

namespace hocket {

Result<std::unique_ptr<VaeEncoder>> VaeEncoder::load(std::shared_ptr<const GgufFile> file,
                                                     const MusicCompute& compute) {
  std::unique_ptr<VaeEncoder> vae(new VaeEncoder);
  vae->compute_ = compute;
  TRY_ASSIGN(const TensorInfo* stem, require_tensor(*file, "encoder.conv1.weight_v"));
  TRY_ASSIGN(const TensorInfo* tail, require_tensor(*file, "encoder.conv2.weight_v"));
  vae->weights_ = std::make_unique<DerivedWeights>(file, compute);
  DerivedWeights& w = *vae->weights_;
  int64_t width = stem->ne[2];
  vae->stem_ = Convolution::make(w, "encoder.conv1", kAudioChannels, width, 7, true);
  for (std::size_t i = 0; i < kMostVaeBlocks; ++i) {
    const std::string p = fmt::format("encoder.block.{}.", i);
    const TensorInfo* down = file->find(p + "conv1.weight_v");
    if (!down) break;
    TRY_ASSIGN(const int64_t stride, resampling_stride(*down));
    const int64_t n_out = down->ne[2];
    vae->blocks_.push_back({residual_units(w, p, width), Snake::make(w, p + "snake1", width),
                            DownConvolution::make(w, p + "conv1", width, n_out, stride)});
    vae->samples_per_frame_ *= stride;
    width = n_out;
  }
  if (vae->blocks_.empty() || vae->samples_per_frame_ > kMusicRateHz || tail->ne[2] % 2 != 0)
    return Error(ErrorCode::kBadModel, "the encoder has no blocks, strides that cannot be, or an odd result",
                 "encoder.conv2.weight_v");
  vae->n_channels_ = tail->ne[2] / 2;  // means, then scales
  vae->tail_snake_ = Snake::make(w, "encoder.snake1", width);
  vae->tail_ = Convolution::make(w, "encoder.conv2", width, 2 * vae->n_channels_, 3, true);
  TRY(compute.load(w, "VAE encoder"));
  return vae;
}

Tensor VaeEncoder::build(NetworkGraph& g, Tensor x) const {
  x = stem_.run(g, x);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    for (const ResidualUnit& unit : blocks_[i].units) x = unit.run(g, x);
    x = blocks_[i].down.run(g, blocks_[i].snake.run(g, x));
    g.tap("enc_block" + std::to_string(i), x);
  }
  return tail_.run(g, tail_snake_.run(g, x));
}

Result<std::vector<float>> VaeEncoder::encode(const StereoAudio& audio, const Tiling& tiling, const CancelToken& cancel,
                                              const TileProgress& progress, Taps* taps) const {
  const auto n_samples = static_cast<int64_t>(audio.n_samples());
  if (audio.rate_hz != kMusicRateHz)
    return Error(ErrorCode::kInvalid, fmt::format("the audio has {} Hz, not {}", audio.rate_hz, kMusicRateHz), "audio");
  if (n_samples < samples_per_frame_)
    return Error(ErrorCode::kInvalid,
                 fmt::format("the audio has {} samples; a latent frame needs {}", n_samples, samples_per_frame_),
                 "audio");

  std::vector<float> latent;
  TiledNetwork network;
  network.n_frames = n_samples / samples_per_frame_;
  network.unit = samples_per_frame_;
  network.n_positions = n_samples;
  network.max_nodes = kVaeMaxNodes;
  network.build = [&](NetworkGraph& g, const Tile& tile) {
    std::vector<float> samples;
    for (auto i = static_cast<std::size_t>(tile.window_first); i < static_cast<std::size_t>(tile.window_last); ++i) {
      samples.push_back(audio.left[i]);
      samples.push_back(audio.right[i]);
    }
    return build(g, g.floats({kAudioChannels, tile.window_last - tile.window_first}, std::move(samples)));
  };
  network.take = [&](const Tile& tile, const std::vector<float>& rows) {
    const int64_t first = (tile.core_first - tile.window_first) / samples_per_frame_;
    const int64_t n = tile.core_last / samples_per_frame_ - tile.core_first / samples_per_frame_;
    for (int64_t t = first; t < first + n; ++t) {
      const auto row = rows.begin() + t * 2 * n_channels_;
      latent.insert(latent.end(), row, row + n_channels_);
    }
  };
  TRY(run_tiles(compute_, network, tiling, cancel, progress, taps));
  return latent;
}

}  // namespace hocket
