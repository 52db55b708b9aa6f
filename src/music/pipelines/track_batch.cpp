#include "music/pipelines/track_batch.h"

#include <fmt/format.h>

#include <random>

namespace hocket {
namespace {

Result<void> check_caption(const MusicRequest& request) {
  const bool may_be_empty =
      request.task_type == "lego" || request.task_type == "extract" || request.task_type == "complete";
  if (request.caption.empty() && !may_be_empty) return Error(ErrorCode::kInvalid, "Caption is required", "caption");
  return {};
}

// One batch has one length, schedule, task, source and region.
Result<void> check_shared(const MusicRequest& a, const MusicRequest& b) {
  const auto differ = [](const char* field) {
    return Error(ErrorCode::kInvalid, fmt::format("requests of one batch must have the same {}", field), field);
  };
  if (a.task_type != b.task_type) return differ("task_type");
  if (a.track != b.track) return differ("track");
  if (a.duration != b.duration) return differ("duration");
  if (a.inference_steps != b.inference_steps) return differ("inference_steps");
  if (a.custom_timesteps != b.custom_timesteps) return differ("custom_timesteps");
  if (a.guidance_scale != b.guidance_scale) return differ("guidance_scale");
  if (a.shift != b.shift) return differ("shift");
  if (a.solver != b.solver) return differ("solver");
  if (a.dcw_mode != b.dcw_mode) return differ("dcw_mode");
  if (a.dcw_scaler != b.dcw_scaler) return differ("dcw_scaler");
  if (a.dcw_high_scaler != b.dcw_high_scaler) return differ("dcw_high_scaler");
  if (a.audio_cover_strength != b.audio_cover_strength) return differ("audio_cover_strength");
  if (a.cover_noise_strength != b.cover_noise_strength) return differ("cover_noise_strength");
  if (a.repainting_start != b.repainting_start) return differ("repainting_start");
  if (a.repainting_end != b.repainting_end) return differ("repainting_end");
  if (a.synth_model != b.synth_model) return differ("synth_model");
  if (a.adapter != b.adapter) return differ("adapter");
  if (a.adapter_scale != b.adapter_scale) return differ("adapter_scale");
  if (a.vae != b.vae) return differ("vae");
  return {};
}

}  // namespace

int64_t resolve_seed(int64_t seed) {
  return seed >= 0 ? seed : static_cast<int64_t>(std::random_device()());
}

Result<std::vector<MusicRequest>> expand_tracks(const std::vector<MusicRequest>& requests) {
  if (requests.empty()) return Error(ErrorCode::kInvalid, "Empty request");
  std::vector<MusicRequest> tracks;
  for (const MusicRequest& request : requests) {
    TRY(request.check());
    TRY(check_caption(request));
    TRY(check_shared(requests.front(), request));
    MusicRequest track = request;
    const int64_t seed = resolve_seed(request.seed);
    track.synth_batch_size = 1;
    for (int i = 0; i < request.synth_batch_size; ++i) {
      track.seed = (seed + i) & 0xFFFFFFFF;
      tracks.push_back(track);
    }
  }
  if (tracks.size() > kMostTracks)
    return Error(ErrorCode::kInvalid,
                 fmt::format("the requests ask for {} tracks; one batch makes {}", tracks.size(), kMostTracks),
                 "synth_batch_size");
  return tracks;
}

}  // namespace hocket
