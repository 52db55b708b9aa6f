// music/fsq/fsq_detokenizer.h: codes at 5 Hz become latent frames at 25 Hz.
//
// Owns     its weights.
// Threads  const after load(); calls by one user at a time.
// Errors   load(): kBadModel naming the tensor. decode(): kInvalid for negative codes; kOutOfMemory, kCancelled.
// Cost     one pass over the weights for every few hundred codes.
// Source   ace-step.md N-37, N-39.
#pragma once

#include <memory>
#include <span>

#include "music/blocks/encoder_stack.h"
#include "music/dit/dit_file.h"
#include "music/fsq/levels.h"

namespace hocket {

class FsqDetokenizer {
 public:
  static Result<std::unique_ptr<FsqDetokenizer>> load(std::shared_ptr<const DitFile> dit, const MusicCompute& compute);

  uint64_t weight_bytes() const { return weights_->weight_bytes(); }
  // [n_channels, 5 · codes.size()].
  Result<std::vector<float>> decode(std::span<const int32_t> codes, const CancelToken& cancel,
                                    Taps* taps = nullptr) const;

 private:
  explicit FsqDetokenizer(std::vector<int64_t> levels) : levels_(std::move(levels)) {}

  MusicCompute compute_;
  std::shared_ptr<const DitFile> dit_;
  std::unique_ptr<WeightSet> weights_;
  FsqLevels levels_;
  int64_t n_embd_ = 0;
  Projection dequantise_, embed_, frame_out_;
  Tensor tokens_ = nullptr;  // [n_embd, 5]
  EncoderStack stack_;
};

}  // namespace hocket
