#include "engine/music_submission.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>

#include "audio/read.h"
#include "music/latent_file.h"
#include "music/pipelines/compose.h"
#include "music/pipelines/track_batch.h"

namespace hocket {
namespace {

constexpr int64_t kSamplesPerFrame = 1920;
constexpr int64_t kRateHz = 48'000;
constexpr float kLargestLatent = 1e3f;

Error invalid(std::string message, const char* field) {
  return Error(ErrorCode::kInvalid, std::move(message), field);
}

Error too_large(std::string message, const char* field) {
  Error error = invalid(std::move(message), field);
  error.reason = "too_large";
  return error;
}

// A submission on its way to a job.
struct Checked {
  const MusicSubmission& submission;
  MusicLibrary& library;
  NewJob job;
  SourceLength source;

  const JobInput* sound(std::string_view name) const {
    for (const JobInput& input : submission.sounds)
      if (input.name == name) return &input;
    return nullptr;
  }
  void warn(std::string text) { job.warnings.push_back(std::move(text)); }
};

// → frames.
Result<int64_t> check_latents(const JobInput& input, const char* field) {
  constexpr std::size_t kFrameBytes = kLatentChannels * sizeof(float);
  if (input.bytes.empty() || input.bytes.size() % kFrameBytes != 0)
    return invalid(fmt::format("{} size not a multiple of 64*4 bytes", field), field);
  const std::size_t n_frames = input.bytes.size() / kFrameBytes;
  if (n_frames > kMostLatentFrames) return too_large(fmt::format("{} exceeds max frames", field), field);
  for (std::size_t at = 0; at < input.bytes.size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, input.bytes.data() + at, sizeof(float));
    if (!std::isfinite(value)) return invalid(fmt::format("{} contains non-finite values", field), field);
    if (std::abs(value) > kLargestLatent)
      return invalid(fmt::format("{} contains values beyond ±{:g}", field, kLargestLatent), field);
  }
  return static_cast<int64_t>(n_frames);
}

// → samples at 48 kHz.
Result<int64_t> check_audio(const JobInput& input, const char* field) {
  if (input.bytes.empty()) return invalid(fmt::format("Multipart: empty '{}' part", field), field);
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const auto audio = read_audio(input.bytes, field);
  if (!audio && audio.error().reason == "too_long")
    return too_large(fmt::format("{} exceeds max duration (10 min)", field), field);
  if (!audio) return invalid("Failed to decode audio: " + audio.error().message, field);
  const int64_t n_samples = static_cast<int64_t>(audio->n_samples()) * kRateHz / audio->rate_hz;
  if (n_samples < kSamplesPerFrame) return invalid(fmt::format("{} is shorter than 40 ms", field), field);
  return n_samples;
}

// The sound to work on: latents win over audio.
Result<void> take_source(Checked& c) {
  if (const JobInput* latents = c.sound("src_latents")) {
    TRY_ASSIGN(c.source.n_frames, check_latents(*latents, "src_latents"));
    c.job.inputs.push_back(*latents);
    if (c.sound("audio")) c.warn("audio is ignored: src_latents was sent, too");
  } else if (const JobInput* audio = c.sound("audio")) {
    TRY_ASSIGN(c.source.n_samples, check_audio(*audio, "audio"));
    c.job.inputs.push_back(*audio);
  }
  return {};
}

Result<void> take_timbre(Checked& c) {
  const JobInput* audio = c.sound("ref_audio");
  if (const JobInput* latents = c.sound("ref_latents")) {
    TRY(check_latents(*latents, "ref_latents"));
    c.job.inputs.push_back(*latents);
    if (audio) c.warn("ref_audio is ignored: ref_latents was sent, too");
  } else if (audio) {
    // Other servers of this protocol go on without it.
    const auto checked = check_audio(*audio, "ref_audio");
    if (checked) c.job.inputs.push_back(*audio);
    if (!checked) c.warn("ref_audio is ignored: " + checked.error().message);
  }
  return {};
}

Result<void> check_lm_model(const Checked& c) {
  TRY(c.library.file(MusicFileKind::kLanguageModel, c.submission.requests.front().lm_model, "lm_model"));
  return {};
}

Result<void> check_lm(Checked& c, int max_batch, std::vector<MusicRequest>& requests) {
  if (requests.size() > static_cast<std::size_t>(max_batch))
    return invalid("Request array exceeds max_batch", "lm_batch_size");
  if (requests.size() == 1 && requests[0].lm_batch_size > max_batch) {
    c.warn(
        fmt::format("lm_batch_size is {} instead of {}: the server's max_batch", max_batch, requests[0].lm_batch_size));
    requests[0].lm_batch_size = max_batch;
  }
  TRY(check_compose(requests));
  return check_lm_model(c);
}

Result<void> check_synth(Checked& c, const std::vector<MusicRequest>& requests) {
  const MusicRequest& first = requests.front();
  TRY_ASSIGN(const std::vector<MusicRequest> tracks, expand_tracks(requests));
  TRY_ASSIGN(const std::string dit_path, c.library.file(MusicFileKind::kDit, first.synth_model, "synth_model"));
  TRY(c.library.file(MusicFileKind::kVae, first.vae, "vae"));
  TRY(c.library.adapter(first.adapter));
  TRY_ASSIGN(const auto dit, c.library.dit(dit_path));
  if (first.task_type == "text2music") {
    if (c.sound("audio") || c.sound("src_latents")) c.warn("the source is ignored: task_type text2music takes none");
  } else {
    TRY(take_source(c));
  }
  TRY(plan_tracks(tracks, c.source, *dit));
  return take_timbre(c);
}

Result<void> check_understand(Checked& c, const MusicRequest& request) {
  TRY(request.check());
  TRY(take_source(c));
  if (!c.source.given()) return invalid("Multipart: missing 'audio' or 'src_latents' part", "audio");
  TRY(check_lm_model(c));
  TRY(c.library.file(MusicFileKind::kDit, request.synth_model, "synth_model"));
  TRY(c.library.file(MusicFileKind::kVae, request.vae, "vae"));
  return {};
}

Result<void> check_vae(Checked& c, const MusicRequest& request) {
  const bool encode = c.sound("audio") != nullptr, decode = c.sound("src_latents") != nullptr;
  if (encode == decode)
    return invalid("Multipart: provide exactly one of 'audio' (encode) or 'src_latents' (decode)", "audio");
  TRY(request.check());
  TRY(c.library.file(MusicFileKind::kVae, request.vae, "vae"));
  TRY(take_source(c));
  if (encode && c.source.n_samples / kSamplesPerFrame >= static_cast<int64_t>(kMostLatentFrames))
    return too_large("audio exceeds max duration (10 min)", "audio");
  return {};
}

}  // namespace

Result<void> check_models(const MusicLibrary& library, MusicTask task) {
  MusicNeeds needs;
  std::string message;
  switch (task) {
    case MusicTask::kCompose:
      needs.lm = true;
      message = "No LM models in registry";
      break;
    case MusicTask::kSynth:
    case MusicTask::kSong:
      needs.text_encoder = needs.dit = needs.vae = true;
      message = "No synth models in registry (need dit + text-encoder + vae)";
      break;
    case MusicTask::kUnderstand:
      needs.lm = needs.dit = needs.vae = true;
      message = "Understand requires LM, DiT and VAE models";
      break;
    case MusicTask::kVae:
      needs.vae = true;
      message = "VAE endpoint requires a VAE in the registry";
      break;
  }
  const std::vector<std::string> missing = library.missing(needs);
  if (missing.empty()) return {};
  Error error(ErrorCode::kUnsupported, fmt::format("{}; missing: {}", message, fmt::join(missing, ", ")),
              fmt::format("{}", fmt::join(missing, ",")));
  error.reason = "models_missing";
  return error;
}

Result<NewJob> check_submission(const MusicSubmission& submission, MusicLibrary& library, int max_batch) {
  TRY(check_models(library, submission.task));
  std::vector<MusicRequest> requests = submission.requests;
  if (requests.empty()) return invalid("Empty request", "request");
  Checked c{submission, library, {}, {}};
  c.job.kind = music_task_name(submission.task);
  c.job.owner = submission.owner;
  switch (submission.task) {
    case MusicTask::kCompose:
      TRY(check_lm(c, max_batch, requests));
      break;
    case MusicTask::kSong:
      if (library.missing({.lm = true}).empty()) {
        TRY(check_lm(c, max_batch, requests));
      } else {
        c.warn("there is no language model: the words go to the transformer as they are");
      }
      TRY(check_synth(c, requests));
      break;
    case MusicTask::kSynth:
      TRY(check_synth(c, requests));
      break;
    case MusicTask::kUnderstand:
      TRY(check_understand(c, requests.front()));
      break;
    case MusicTask::kVae:
      TRY(check_vae(c, requests.front()));
      break;
  }
  c.job.request = music_requests_json(requests);
  return std::move(c.job);
}

}  // namespace hocket
