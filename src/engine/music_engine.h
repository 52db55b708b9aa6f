// engine/music_engine.h: the pipelines of music over model files, with what they share: device, threads, loaded
// networks.
//
// Owns     the threads; with ResidencyPolicy::kKeep every network that was loaded.
// Threads  one call at a time.
// Errors   those of the pipelines and files, and of MusicRunOptions::room.
// Cost     that of the networks, which are loaded for a call unless they stay. Asking for room measures them first.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "music/pipelines/compose.h"
#include "music/pipelines/progress.h"
#include "music/pipelines/synth.h"
#include "music/planner/planner_model.h"
#include "music/request.h"
#include "store/residency.h"

namespace hocket {

struct MusicRunOptions {
  std::string device;
  int n_threads = 0;
  std::size_t max_seq = 8192;
  int64_t vae_chunk_frames = 0;  // 0: as the free memory allows
  int64_t vae_overlap_frames = 12;
  // Asked before each piece of work, where it is set, for the bytes that this will take; they are free until the lease
  // ends. Any thread.
  std::function<Result<std::shared_ptr<void>>(std::string_view what, uint64_t n_bytes, const CancelToken& cancel)> room;
};

class MusicEngine {
 public:
  static Result<std::unique_ptr<MusicEngine>> create(const MusicRunOptions& options, ResidencyPolicy policy);

  Result<std::vector<MusicRequest>> compose(const std::string& lm, const std::vector<MusicRequest>& requests,
                                            const MusicProgressFunction& progress, const CancelToken& cancel) const;
  // What compose() would take.
  Result<MemoryPlan> plan_compose(const std::string& lm, const std::vector<MusicRequest>& requests) const;
  // The job's tiling is that of the options.
  Result<std::vector<SynthTrack>> synth(const SynthPaths& paths, SynthJob job, const MusicProgressFunction& progress,
                                        const CancelToken& cancel) const;
  // What synth() would take.
  Result<SynthMemory> plan_synth(const SynthPaths& paths, SynthJob job, const CancelToken& cancel) const;
  struct Understood {
    MusicRequest request;
    std::vector<float> latent;  // of the sound
  };
  // `vae` is needed for audio only.
  Result<Understood> understand(const std::string& lm, const std::string& dit, const std::string& vae,
                                const SynthSound& sound, const MusicRequest& request,
                                const MusicProgressFunction& progress, const CancelToken& cancel) const;
  Result<std::vector<float>> encode(const std::string& vae, const StereoAudio& audio,
                                    const MusicProgressFunction& progress, const CancelToken& cancel) const;
  Result<StereoAudio> decode(const std::string& vae, std::span<const float> latent,
                             const MusicProgressFunction& progress, const CancelToken& cancel) const;

 private:
  MusicEngine(const MusicRunOptions& options, ResidencyPolicy policy)
      : options_(options), models_(std::make_shared<Residency>(policy)) {}
  Result<std::shared_ptr<const PlannerModel>> planner(const std::string& path) const;
  // Asks for the room of the work that `dry_run(compute, residency)` does with networks that are only measured.
  template <class DryRun>
  Result<std::shared_ptr<void>> room_for(std::string_view what, const DryRun& dry_run, const CancelToken& cancel) const;
  using PlannerSize = std::function<Result<ComposeSize>(const MusicTokenizer&)>;
  Result<MemoryPlan> plan_planner(const std::string& path, const PlannerSize& size) const;
  Result<std::shared_ptr<void>> room_for_planner(const std::string& path, const PlannerSize& size,
                                                 const CancelToken& cancel) const;
  PlannerOptions planner_options() const { return {options_.device, options_.max_seq, options_.n_threads}; }
  Tiling tiling() const { return {options_.vae_chunk_frames, options_.vae_overlap_frames}; }

  const MusicRunOptions options_;
  MusicCompute compute_;
  const std::shared_ptr<Residency> models_;
};

}  // namespace hocket
