// music/vae/vae_decoder.h: latent frames at 25 Hz become sound at 48 kHz.
//
// Owns     its weights (F32, weight norm applied).
// Threads  const after load(); calls by one user at a time.
// Errors   load(): kBadModel naming the tensor. decode(): kInvalid for no frames or values that are not finite;
//          kOutOfMemory, kCancelled within a window.
// Cost     about 2.4 billion multiply-adds a frame of the published model; memory of one window.
// Source   ace-step.md §§2.5, 5.7.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "audio/stereo.h"
#include "music/blocks/layer_sizes.h"
#include "music/vae/tiles.h"
#include "music/vae/vae_blocks.h"

namespace hocket {

class VaeDecoder {
 public:
  static Result<std::unique_ptr<VaeDecoder>> load(std::shared_ptr<const GgufFile> file, const MusicCompute& compute);

  int64_t n_channels() const { return n_channels_; }
  int64_t samples_per_frame() const { return samples_per_frame_; }
  uint64_t weight_bytes() const { return weights_->weight_bytes(); }
  // latent [n_channels, n_frames] → n_frames · samples_per_frame samples.
  Result<StereoAudio> decode(std::span<const float> latent, const Tiling& tiling, const CancelToken& cancel,
                             const TileProgress& progress = {}, Taps* taps = nullptr) const;

 private:
  struct Block {
    Snake snake;
    UpConvolution up;
    std::vector<ResidualUnit> units;
  };

  VaeDecoder() = default;
  Tensor build(NetworkGraph& g, Tensor x) const;

  MusicCompute compute_;
  std::unique_ptr<DerivedWeights> weights_;
  int64_t n_channels_ = 0, samples_per_frame_ = 1;
  Convolution stem_, tail_;
  std::vector<Block> blocks_;
  Snake tail_snake_;
};

}  // namespace hocket
