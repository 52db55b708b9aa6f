#include "music/pipelines/synth_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "music/fsq/fsq_tokenizer.h"
#include "music/pipelines/prompts.h"
#include "music/solvers/schedule.h"

namespace hocket {
namespace {

constexpr int64_t kFrameSamples = 1920;
constexpr float kRateHz = 48'000, kFramesPerSecond = 25;
constexpr int kMostSteps = 100;
constexpr float kDefaultSeconds = 30;

// The formats' float arithmetic is part of the contract: where a frame begins depends on it.
int64_t frames_of(float seconds) {
  return static_cast<int64_t>(seconds * kRateHz / static_cast<float>(kFrameSamples));
}

// Padding and region, in seconds of the source.
Result<void> plan_region(SynthPlan& plan, const MusicRequest& request, const SourceLength& source) {
  const bool latent = source.n_frames > 0;
  const float length =
      latent ? static_cast<float>(source.n_frames) / kFramesPerSecond : static_cast<float>(source.n_samples) / kRateHz;
  const float start = request.repainting_start;
  const float end = request.repainting_end < 0 ? length : request.repainting_end;
  const float before = start < 0 ? -start : 0.0f;
  const float after = end > length ? end - length : 0.0f;
  const auto amount = [&](float seconds) {
    return static_cast<int64_t>(latent ? seconds * kFramesPerSecond + 0.5f : seconds * kRateHz);
  };
  plan.pad_before = amount(before);
  plan.pad_after = amount(after);
  plan.n_source_frames = latent ? source.n_frames + plan.pad_before + plan.pad_after
                                : (source.n_samples + plan.pad_before + plan.pad_after) / kFrameSamples;
  float padded_end = end + before;
  if (request.repainting_end < 0 && start < 0) padded_end = before;  // only what comes before the source
  const float padded_start = start + before;
  if (!(padded_end > padded_start))
    return Error(ErrorCode::kInvalid,
                 fmt::format("the region from {:g} to {:g} s is empty", request.repainting_start, end),
                 "repainting_end");
  plan.region_first = std::max<int64_t>(0, frames_of(padded_start));
  plan.region_last = frames_of(padded_end);
  return {};
}

void plan_start(SynthPlan& plan, float noise_strength) {
  const float level = 1.0f - noise_strength;
  std::size_t nearest = 0;
  for (std::size_t i = 1; i < plan.schedule.size(); ++i)
    if (std::abs(plan.schedule[i] - level) < std::abs(plan.schedule[nearest] - level)) nearest = i;
  plan.start_level = plan.schedule[nearest];
  plan.schedule.erase(plan.schedule.begin(), plan.schedule.begin() + static_cast<std::ptrdiff_t>(nearest));
}

}  // namespace

Result<SynthPlan> plan_synth(const MusicRequest& request, std::size_t n_codes, const SourceLength& source,
                             const SynthModelFacts& model) {
  SynthPlan plan;
  const std::string& task = request.task_type;
  const bool needs_source = task != "text2music";
  if (needs_source && !source.given())
    return Error(ErrorCode::kInvalid, fmt::format("task '{}' requires source audio or latents", task), "task_type");
  if (model.turbo && (task == "lego" || task == "extract" || task == "complete"))
    log_warn("task '{}' requires a base model; this one is turbo", task);
  plan.from_source = needs_source;
  plan.from_codes = !needs_source && n_codes > 0;
  plan.round_trip = task == "cover";
  plan.from_region = task == "repaint" || (task == "lego" && request.repainting_end > request.repainting_start);
  plan.instruction = task_instruction(task, request.track, plan.from_codes);

  plan.steps = request.inference_steps > 0 ? std::min(request.inference_steps, kMostSteps) : model.turbo ? 8 : 50;
  if (request.inference_steps > kMostSteps)
    log_warn("inference_steps {} is limited to {}", request.inference_steps, kMostSteps);
  plan.guidance = request.guidance_scale > 0 ? request.guidance_scale : 1.0f;
  if (plan.guidance > 1 && model.turbo) log_warn("guidance_scale above 1 is not meant for turbo models");
  plan.guided = plan.guidance > 1 && model.has_null_condition;
  plan.shift = request.shift > 0 ? request.shift : model.turbo ? 3.0f : 1.0f;
  plan.schedule = make_schedule(plan.steps, plan.shift);
  if (!request.custom_timesteps.empty()) {
    if (auto times = parse_timesteps(request.custom_timesteps)) {
      for (std::size_t i = 0; i < times->size(); ++i)
        if (!((*times)[i] > 0 && (*times)[i] <= 1 && (i == 0 || (*times)[i] < (*times)[i - 1])))
          return Error(ErrorCode::kInvalid, "custom_timesteps must fall within (0, 1]", "custom_timesteps");
      plan.schedule = std::move(*times);
      plan.steps = static_cast<int>(plan.schedule.size());
    } else {
      log_warn("custom_timesteps has fewer than two times and is not used");
    }
  }

  plan.duration_s = request.duration > 0 ? request.duration : kDefaultSeconds;
  if (plan.from_source) {
    plan.n_source_frames = source.n_frames > 0 ? source.n_frames : source.n_samples / kFrameSamples;
    if (plan.from_region) TRY(plan_region(plan, request, source));
    if (plan.n_source_frames < 1)
      return Error(ErrorCode::kInvalid, "the source is shorter than one frame of 1920 samples", "audio");
    plan.n_frames = plan.n_source_frames;
    plan.duration_s = static_cast<float>(plan.n_frames) / kFramesPerSecond;
  } else if (plan.from_codes) {
    plan.n_frames = kFramesPerCode * static_cast<int64_t>(n_codes);
    if (request.duration <= 0) plan.duration_s = static_cast<float>(n_codes) / (kFramesPerSecond / kFramesPerCode);
  } else {
    plan.n_frames = frames_of(plan.duration_s);
  }
  plan.n_frames = (plan.n_frames + model.patch - 1) / model.patch * model.patch;
  if (plan.n_frames < 1 || plan.n_frames > model.max_frames)
    return Error(ErrorCode::kInvalid,
                 fmt::format("the song would have {} frames; this model makes 1 to {} (25 a second)", plan.n_frames,
                             model.max_frames),
                 "duration");
  if (plan.from_region) {
    plan.region_last = std::min(plan.region_last, plan.n_frames);
    plan.region_first = std::min(plan.region_first, plan.n_frames);
    if (plan.region_first >= plan.region_last)
      return Error(ErrorCode::kInvalid, "the region holds no frame", "repainting_end");
  }

  if (plan.from_source && request.cover_noise_strength > 0) plan_start(plan, request.cover_noise_strength);
  if ((plan.from_source || plan.from_codes) && !plan.from_region && request.audio_cover_strength < 1)
    plan.switch_step = static_cast<std::size_t>(
        static_cast<float>(plan.start_level ? plan.schedule.size() : static_cast<std::size_t>(plan.steps)) *
        request.audio_cover_strength);
  return plan;
}

}  // namespace hocket
