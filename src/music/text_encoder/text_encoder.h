// music/text_encoder/text_encoder.h: a causal Qwen3 encoder: a vector for each token of the prompt.
//
// Owns     its weights.
// Threads  const after load(); calls by one user at a time (they share the threads of MusicCompute).
// Errors   load(): kBadModel naming key or tensor. encode(), embed(): kInvalid for ids outside the table or too many;
//          kOutOfMemory, kCancelled.
// Cost     one pass over the weights.
// Source   ace-step.md §§2.3, 5.3.
#pragma once

#include <memory>
#include <span>

#include "music/blocks/encoder_stack.h"

namespace hocket {

class TextEncoder {
 public:
  static Result<std::unique_ptr<TextEncoder>> load(std::shared_ptr<const GgufFile> file, const MusicCompute& compute);

  int64_t n_embd() const { return sizes_.n_embd; }
  uint64_t weight_bytes() const { return weights_->weight_bytes(); }
  // [n_embd, ids.size()]: the states of all positions after the final norm.
  Result<std::vector<float>> encode(std::span<const int32_t> ids, const CancelToken& cancel,
                                    Taps* taps = nullptr) const;
  // [n_embd, ids.size()]: rows of the table.
  Result<std::vector<float>> embed(std::span<const int32_t> ids, const CancelToken& cancel) const;

 private:
  TextEncoder() = default;
  Result<void> check(std::span<const int32_t> ids) const;

  MusicCompute compute_;
  std::shared_ptr<const GgufFile> file_;
  std::unique_ptr<WeightSet> weights_;
  LayerSizes sizes_;
  int64_t n_vocab_ = 0;
  Tensor table_ = nullptr;  // [n_embd, n_vocab]
  EncoderStack stack_;
};

}  // namespace hocket
