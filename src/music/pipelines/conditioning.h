// music/pipelines/conditioning.h: the encoded texts of several songs, padded to one length.
//
// Threads  one user at a time.
// Errors   those of the encoders; kInvalid for texts that are too long.
// Cost     borrows text encoder and condition encoder, one after the other.
// Source   ace-step.md §7.5, S-11.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "music/cond/condition_encoder.h"
#include "music/tokens.h"
#include "store/residency.h"

namespace hocket {

struct SongText {
  std::string text, lyrics;  // prompts
};

struct Conditioning {
  std::vector<float> rows;       // [n_enc, n_rows, n_songs]
  std::vector<int64_t> lengths;  // real rows of each song
  int64_t n_rows = 0;
};

struct ConditioningModels {
  std::shared_ptr<const GgufFile> text_encoder;
  std::string text_encoder_path;
  std::shared_ptr<const DitFile> dit;
  Residency& resident;
};

// timbre [n_channels, …], at least one frame, shared by all songs.
Result<Conditioning> encode_songs(const ConditioningModels& models, const MusicTokenizer& tokenizer,
                                  const std::vector<SongText>& songs, std::span<const float> timbre,
                                  const MusicCompute& compute, const CancelToken& cancel);

// One row for every song, all of them "no conditioning": the shape of `like`.
std::vector<float> unconditional_rows(const DitFile& dit, const Conditioning& like);

}  // namespace hocket
