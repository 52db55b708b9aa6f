// music/cond/condition_encoder.h: text states, lyric embeddings and timbre frames become one conditioning sequence.
//
// Owns     its weights.
// Threads  const after load(); calls by one user at a time.
// Errors   load(): kBadModel naming the tensor. encode(): kOutOfMemory, kCancelled.
// Cost     one pass over the weights; lyrics attend to all lyrics in every second layer.
// Source   ace-step.md §5.4.
#pragma once

#include <memory>
#include <span>

#include "music/blocks/encoder_stack.h"
#include "music/dit/dit_file.h"

namespace hocket {

class ConditionEncoder {
 public:
  static Result<std::unique_ptr<ConditionEncoder>> load(std::shared_ptr<const DitFile> dit,
                                                        const MusicCompute& compute);

  int64_t n_text() const { return n_text_; }        // width of text states and lyric embeddings
  int64_t n_embd() const { return sizes_.n_embd; }  // width of the conditioning
  uint64_t weight_bytes() const { return weights_->weight_bytes(); }

  struct Input {
    std::span<const float> text;    // [n_text, …]
    std::span<const float> lyrics;  // [n_text, …]
    std::span<const float> timbre;  // [n_channels, …], at least one frame
  };
  // [n_embd, n_lyrics + 1 + n_text]: lyric states, one timbre vector, text states.
  Result<std::vector<float>> encode(const Input& input, const CancelToken& cancel, Taps* taps = nullptr) const;

 private:
  ConditionEncoder() = default;
  Result<std::vector<float>> encode_lyrics(std::span<const float> lyrics, const CancelToken& cancel, Taps* taps) const;
  Result<std::vector<float>> encode_timbre(std::span<const float> timbre, const CancelToken& cancel, Taps* taps) const;
  Result<std::vector<float>> project_text(std::span<const float> text, const CancelToken& cancel) const;

  MusicCompute compute_;
  std::shared_ptr<const DitFile> dit_;
  std::unique_ptr<WeightSet> weights_;
  LayerSizes sizes_;
  int64_t n_text_ = 0;
  Projection lyric_in_, timbre_in_, text_;
  Tensor timbre_token_ = nullptr;  // [n_embd] or nullptr
  EncoderStack lyric_, timbre_;
};

}  // namespace hocket
