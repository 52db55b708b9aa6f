// music/fsq/fsq_tokenizer.h: latent frames at 25 Hz become codes at 5 Hz.
//
// Owns     its weights.
// Threads  const after load(); calls by one user at a time.
// Errors   load(): kBadModel naming the tensor. encode(): kInvalid for no frames or too many; kOutOfMemory, kCancelled.
// Cost     one pass over the weights for every few hundred codes.
// Source   ace-step.md N-38, N-39.
#pragma once

#include <memory>
#include <span>

#include "music/blocks/encoder_stack.h"
#include "music/dit/dit_file.h"
#include "music/fsq/levels.h"

namespace hocket {

inline constexpr int64_t kFramesPerCode = 5;

class FsqTokenizer {
 public:
  static Result<std::unique_ptr<FsqTokenizer>> load(std::shared_ptr<const DitFile> dit, const MusicCompute& compute);

  uint64_t weight_bytes() const { return weights_->weight_bytes(); }
  // frames [n_channels, n] → ceil(n / 5) codes; silence completes the last group.
  Result<std::vector<int32_t>> encode(std::span<const float> frames, const CancelToken& cancel,
                                      Taps* taps = nullptr) const;

 private:
  explicit FsqTokenizer(std::vector<int64_t> levels) : levels_(std::move(levels)) {}

  MusicCompute compute_;
  std::shared_ptr<const DitFile> dit_;
  std::unique_ptr<WeightSet> weights_;
  FsqLevels levels_;
  int64_t n_embd_ = 0;
  Projection frame_in_, embed_, quantise_;
  Tensor token_ = nullptr;  // [n_embd]
  EncoderStack stack_;
};

}  // namespace hocket
