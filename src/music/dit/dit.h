// music/dit/dit.h: the diffusion transformer: from a noisy latent to the velocity that leads away from the noise.
//
// Dit holds the weights; a DitPass is one graph for a number of samples of one length, run once a step.
//
// Owns     Dit: weights. DitPass: graph, compute buffers, the last context and conditioning; borrows the Dit.
// Threads  Dit is const after load(); a pass by one user at a time.
// Errors   load(): kBadModel naming the tensor. DitPass::create(): kInvalid for shapes that do not fit, kOutOfMemory.
//          run(): kCancelled, also in the middle of a pass.
// Cost     a pass reads all weights once; attention of every second layer grows with the square of the length.
// Source   ace-step.md §5.5.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "music/blocks/attention.h"
#include "music/blocks/swiglu.h"
#include "music/dit/dit_file.h"
#include "music/dit/timestep.h"

namespace hocket {

class Dit {
 public:
  static Result<std::unique_ptr<Dit>> load(std::shared_ptr<const DitFile> dit, const MusicCompute& compute);
  // Weights from elsewhere than the file itself (adapters).
  static Result<std::unique_ptr<Dit>> load(std::shared_ptr<const DitFile> dit, std::shared_ptr<WeightSource> source,
                                           const MusicCompute& compute);

  const DitConfig& config() const { return dit_->config(); }
  int64_t n_enc() const { return dit_->n_enc(); }
  uint64_t weight_bytes() const { return weights_->weight_bytes(); }

 private:
  friend class DitPass;
  struct Layer {
    RmsScale self_norm, cross_norm, mlp_norm;
    AttentionBlock self, cross;
    SwigluBlock mlp;
    Tensor table;  // [n_embd, 6]
  };

  Dit() = default;
  Tensor run_layer(NetworkGraph& g, std::size_t il, Tensor h, Tensor time, Tensor condition, Tensor positions,
                   const std::vector<int64_t>& enc_lengths) const;

  MusicCompute compute_;
  std::shared_ptr<const DitFile> dit_;
  std::unique_ptr<WeightSet> weights_;
  TimestepEmbedder time_, time_r_;
  Tensor in_weight_ = nullptr;   // [patch, 3 · n_channels, n_embd]
  Tensor in_bias_ = nullptr;     // [n_embd]
  Tensor out_weight_ = nullptr;  // [patch, n_channels, n_embd]
  Tensor out_bias_ = nullptr;    // [n_channels]
  Tensor out_table_ = nullptr;   // [n_embd, 2]
  Projection condition_;
  RmsScale out_norm_;
  std::vector<Layer> layers_;
};

struct DitShape {
  int64_t n_frames = 0;              // of each sample; a multiple of the patch
  std::vector<int64_t> enc_lengths;  // real length of each sample's conditioning
  int64_t n_enc_rows = 0;            // the common, padded length
};

class DitPass {
 public:
  static Result<std::unique_ptr<DitPass>> create(const Dit& dit, const DitShape& shape, Taps* taps = nullptr);

  // [2 · n_channels, n_frames, n_samples]: source, then mask.
  void set_context(std::span<const float> context);
  // [n_enc, n_enc_rows, n_samples].
  void set_conditioning(std::span<const float> conditioning);
  // x [n_channels, n_frames, n_samples] at time t → velocity of the same shape.
  Result<std::vector<float>> run(std::span<const float> x, float t, const CancelToken& cancel);

  std::size_t compute_bytes() const { return executor_->compute_bytes(); }

 private:
  DitPass(const Dit& dit, const DitShape& shape, std::size_t max_nodes, Taps* taps)
      : dit_(dit), shape_(shape), graph_(dit.compute_, max_nodes, taps), taps_(taps) {}
  void build();

  const Dit& dit_;
  DitShape shape_;
  NetworkGraph graph_;
  Taps* taps_;
  std::unique_ptr<NetworkExecutor> executor_;
  std::vector<float> context_;
  Tensor input_ = nullptr;         // [3 · n_channels · patch, n_positions · n_samples]
  Tensor conditioning_ = nullptr;  // [n_enc, n_enc_rows · n_samples]
  Tensor sinusoid_ = nullptr;      // [256]
  Tensor velocity_ = nullptr;      // [n_channels, n_frames · n_samples]
};

}  // namespace hocket
