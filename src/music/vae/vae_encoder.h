// music/vae/vae_encoder.h: sound at 48 kHz becomes latent frames at 25 Hz (the mean; nothing is drawn at random).
//
// Owns     its weights (F32, weight norm applied).
// Threads  const after load(); calls by one user at a time.
// Errors   load(): kBadModel naming the tensor. encode(): kInvalid for less than one frame or another rate;
//          kOutOfMemory, kCancelled within a window.
// Cost     about that of decoding; memory of one window.
// Source   ace-step.md N-44, N-45.
#pragma once

#include <memory>
#include <vector>

#include "audio/stereo.h"
#include "music/blocks/layer_sizes.h"
#include "music/vae/tiles.h"
#include "music/vae/vae_blocks.h"

namespace hocket {

class VaeEncoder {
 public:
  static Result<std::unique_ptr<VaeEncoder>> load(std::shared_ptr<const GgufFile> file, const MusicCompute& compute);

  int64_t n_channels() const { return n_channels_; }
  int64_t samples_per_frame() const { return samples_per_frame_; }
  uint64_t weight_bytes() const { return weights_->weight_bytes(); }
  // → [n_channels, floor(n_samples / samples_per_frame)].
  Result<std::vector<float>> encode(const StereoAudio& audio, const Tiling& tiling, const CancelToken& cancel,
                                    const TileProgress& progress = {}, Taps* taps = nullptr) const;

 private:
  struct Block {
    std::vector<ResidualUnit> units;
    Snake snake;
    DownConvolution down;
  };

  VaeEncoder() = default;
  Tensor build(NetworkGraph& g, Tensor x) const;

  MusicCompute compute_;
  std::unique_ptr<DerivedWeights> weights_;
  int64_t n_channels_ = 0, samples_per_frame_ = 1;
  Convolution stem_, tail_;
  std::vector<Block> blocks_;
  Snake tail_snake_;
};

}  // namespace hocket
