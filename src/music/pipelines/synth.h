// music/pipelines/synth.h: from words to sound: text and lyrics, perhaps codes or a source, become songs.
//
//   TRY_ASSIGN(auto synth, SynthPipeline::open(paths, compute));
//   TRY_ASSIGN(auto tracks, synth->run(job, {}, cancel));
//   TRY_ASSIGN(auto bytes, encode_track(tracks[0], cancel));
//
// The networks are borrowed one after another: with a strict residency memory holds one of them at a time.
//
// Owns     the open files and the tokenizer.
// Threads  const; runs by one user at a time (they share the threads of MusicCompute).
// Errors   open(): those of the files. run(): kInvalid naming the field, kOutOfMemory, kCancelled (within a step of the
//          sampler, a window of the VAE).
// Cost     that of the networks; see their headers.
// Source   ace-step.md §7.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "audio/stereo.h"
#include "music/blocks/network_graph.h"
#include "music/dit/dit_file.h"
#include "music/pipelines/conditioning.h"
#include "music/pipelines/progress.h"
#include "music/pipelines/synth_plan.h"
#include "music/request.h"
#include "music/vae/tiles.h"
#include "store/residency.h"

namespace hocket {

class FsqDetokenizer;
class VaeEncoder;

struct SynthPaths {
  std::string text_encoder, dit, vae;
};

// Sound that comes with a request: audio, or a latent [n_channels, n_frames], or nothing.
struct SynthSound {
  StereoAudio audio;  // 48 kHz
  std::vector<float> latent;
  bool given() const { return audio.n_samples() > 0 || !latent.empty(); }
};

struct SynthJob {
  std::vector<MusicRequest> requests;  // each makes `synth_batch_size` tracks with neighbouring seeds; 9 in all at most
  SynthSound source;
  SynthSound timbre;
  std::string adapter;  // file or folder; "": none. The requests give its scale
  Tiling tiling;
};

struct SynthTrack {
  MusicRequest request;       // with the seed that made it
  std::vector<float> latent;  // [n_channels, n_frames]
  StereoAudio audio;          // as the VAE gave it, not yet normalised
};

// What a run takes at most.
struct SynthMemory {
  std::vector<NetworkMemory> networks;  // in the order in which they are loaded
  uint64_t sound_bytes = 0;             // of the tracks, their latents and the file that is written
  // With one network in memory at a time, and with all of them.
  uint64_t total_bytes(ResidencyPolicy policy) const;
};

// Everything that a run checks before it begins: `tracks` as expand_tracks() gives them.
Result<SynthPlan> plan_tracks(const std::vector<MusicRequest>& tracks, const SourceLength& source, const DitFile& dit);

class SynthPipeline {
 public:
  static Result<std::unique_ptr<SynthPipeline>> open(
      const SynthPaths& paths, const MusicCompute& compute,
      std::shared_ptr<Residency> models = std::make_shared<Residency>(ResidencyPolicy::kStrict));

  const DitFile& dit() const { return *dit_; }
  // What run() would take with the same arguments; nothing is loaded.
  static Result<SynthMemory> plan_memory(const SynthPaths& paths, const MusicCompute& compute, const SynthJob& job,
                                         const CancelToken& cancel);
  Result<std::vector<SynthTrack>> run(const SynthJob& job, const MusicProgressFunction& progress,
                                      const CancelToken& cancel) const;

 private:
  struct Work;

  SynthPipeline() = default;
  Result<std::shared_ptr<const VaeEncoder>> vae_encoder() const;
  Result<std::shared_ptr<const FsqDetokenizer>> fsq_detokenizer() const;
  Result<void> prepare_source(Work& work) const;
  Result<std::vector<float>> timbre_frames(const Work& work) const;
  Result<void> encode_text(Work& work) const;
  Result<void> build_contexts(Work& work) const;
  Result<std::vector<float>> sample(Work& work) const;
  Result<void> decode(Work& work, const std::vector<float>& latents) const;

  SynthPaths paths_;
  MusicCompute compute_;
  std::shared_ptr<Residency> models_;
  std::shared_ptr<const GgufFile> text_encoder_, vae_;
  std::shared_ptr<const DitFile> dit_;
  std::unique_ptr<MusicTokenizer> tokenizer_;
};

// Normalised and encoded as its request asks; the tags hold the request.
Result<std::vector<std::byte>> encode_track(const SynthTrack& track, const CancelToken& cancel);

}  // namespace hocket
