// music/dit/dit_file.h: a DiT file: its settings, and the constants that the pipeline itself needs.
//
// Owns     the open file, the silence latents (3.8 MB for 10 minutes), the unconditional vector.
// Threads  const after open().
// Errors   kBadModel naming the key or tensor.
// Source   ace-step.md §2.4.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "music/blocks/layer_sizes.h"
#include "weights/gguf.h"

namespace hocket {

struct DitConfig {
  int64_t n_channels = 64;  // of a latent frame
  int64_t patch = 2;        // frames of a DiT position
  int64_t window = 128;     // in DiT positions
  std::size_t n_layer = 0;
  LayerSizes layer;
  float rope_base = 1e6f;
  float eps = 1e-6f;
  bool turbo = false;
  bool timbre_token = false;  // a class token in front of the timbre frames
  std::size_t n_lyric_layer = 8, n_timbre_layer = 4, n_pooler_layer = 2;
  std::vector<int64_t> fsq_levels{8, 8, 8, 5, 5, 5};
};

class DitFile {
 public:
  static Result<std::shared_ptr<const DitFile>> open(const std::string& path);

  const std::shared_ptr<const GgufFile>& gguf() const { return file_; }
  const DitConfig& config() const { return config_; }
  const std::string& path() const { return path_; }
  // Frames of silence, [n_channels, n_silence_frames]; a song has at most as many.
  const std::vector<float>& silence() const { return silence_; }
  int64_t n_silence_frames() const { return static_cast<int64_t>(silence_.size()) / config_.n_channels; }
  // What stands for "no conditioning", [n_enc]; empty when the file has none.
  const std::vector<float>& null_condition() const { return null_condition_; }
  int64_t n_enc() const { return n_enc_; }  // width of the conditioning

 private:
  DitFile() = default;

  std::string path_;
  std::shared_ptr<const GgufFile> file_;
  DitConfig config_;
  std::vector<float> silence_, null_condition_;
  int64_t n_enc_ = 0;
};

}  // namespace hocket
