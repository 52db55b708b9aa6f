#include "engine/local_music_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "audio/read.h"
#include "audio/resample.h"
#include "audio/write.h"
#include "engine/music_submission.h"
#include "music/latent_file.h"
#include "music/pipelines/understand.h"
#include "music/vae/vae_blocks.h"

namespace hocket {
namespace {

constexpr const char* kLatentType = "application/octet-stream";

MusicProgressFunction progress_of(const RunningJob& job) {
  return [&job](const MusicProgress& p) { job.progress(p.stage, p.step, p.steps); };
}

Result<SynthSound> read_sound(const RunningJob& job, const char* audio, const char* latents) {
  SynthSound sound;
  TRY_ASSIGN(const auto latent_bytes, job.input(latents));
  if (latent_bytes) {
    sound.latent.resize(latent_bytes->size() / sizeof(float));
    std::memcpy(sound.latent.data(), latent_bytes->data(), sound.latent.size() * sizeof(float));
    return sound;
  }
  TRY_ASSIGN(const auto audio_bytes, job.input(audio));
  if (!audio_bytes) return sound;
  TRY_ASSIGN(StereoAudio decoded, read_audio(*audio_bytes, audio));
  TRY_ASSIGN(sound.audio, resample(std::move(decoded), kMusicRateHz));
  return sound;
}

JobOutput latent_output(const std::string& name, const std::vector<float>& latent) {
  return {name, kLatentType, write_latent(latent, LatentFormat::kFloat)};
}

JobOutput json_output(const std::vector<MusicRequest>& requests) {
  const std::string text = music_requests_json(requests);
  JobOutput output{"requests.json", "application/json", std::vector<std::byte>(text.size())};
  std::memcpy(output.bytes.data(), text.data(), text.size());
  return output;
}

Result<JobOutput> audio_output(const std::string& stem, const SynthTrack& track, const CancelToken& cancel) {
  const auto format = parse_audio_format(track.request.output_format);
  if (!format) return Error(ErrorCode::kInvalid, "unknown output_format", "output_format");
  TRY_ASSIGN(std::vector<std::byte> bytes, encode_track(track, cancel));
  return JobOutput{fmt::format("{}.{}", stem, audio_extension(*format)), std::string(audio_media_type(*format)),
                   std::move(bytes)};
}

}  // namespace

std::string_view music_task_name(MusicTask task) {
  switch (task) {
    case MusicTask::kCompose:
      return "lm";
    case MusicTask::kSynth:
      return "synth";
    case MusicTask::kSong:
      return "song";
    case MusicTask::kUnderstand:
      return "understand";
    case MusicTask::kVae:
      return "vae";
  }
  return {};
}

MusicRequest music_defaults(MusicTask task) {
  return task == MusicTask::kUnderstand ? understand_defaults() : MusicRequest();
}

Result<std::shared_ptr<MusicService>> MusicService::open(const MusicServiceOptions& options) {
  return LocalMusicService::open(options);
}

Result<std::shared_ptr<MusicService>> LocalMusicService::open(const MusicServiceOptions& options) {
  std::shared_ptr<LocalMusicService> service(new LocalMusicService(options.max_batch));
  TRY_ASSIGN(service->library_, MusicLibrary::open({options.models, options.adapters, options.defaults,
                                                    options.residency == ResidencyPolicy::kKeep}));
  TRY_ASSIGN(service->engine_, MusicEngine::create(options.run, options.residency));
  TRY_ASSIGN(service->queue_,
             JobQueue::open(options.jobs, [s = service.get()](const RunningJob& job) { return s->run(job); }));
  return std::shared_ptr<MusicService>(std::move(service));
}

Result<void> LocalMusicService::ready(MusicTask task) const {
  return check_models(*library_, task);
}

Result<JobStatus> LocalMusicService::submit(const MusicSubmission& submission) {
  TRY_ASSIGN(const NewJob job, check_submission(submission, *library_, max_batch_));
  return queue_->submit(job);
}

Result<std::vector<JobOutput>> LocalMusicService::run(const RunningJob& job) {
  TRY_ASSIGN(const std::vector<MusicRequest> requests, parse_music_requests(job.request()));
  for (const MusicTask task :
       {MusicTask::kCompose, MusicTask::kSynth, MusicTask::kSong, MusicTask::kUnderstand, MusicTask::kVae}) {
    if (job.kind() != music_task_name(task)) continue;
    TRY(ready(task));  // models may be gone since it was submitted
    switch (task) {
      case MusicTask::kCompose:
        return run_compose(job, requests);
      case MusicTask::kSynth:
        return run_synth(job, requests);
      case MusicTask::kSong:
        return run_song(job, requests);
      case MusicTask::kUnderstand:
        return run_understand(job, requests.front());
      case MusicTask::kVae:
        return run_vae(job, requests.front());
    }
  }
  return Error(ErrorCode::kUnsupported, fmt::format("this program does not know jobs of kind \"{}\"", job.kind()));
}

Result<std::vector<JobOutput>> LocalMusicService::run_compose(const RunningJob& job,
                                                              const std::vector<MusicRequest>& requests) {
  TRY_ASSIGN(const std::string lm,
             library_->file(MusicFileKind::kLanguageModel, requests.front().lm_model, "lm_model"));
  TRY_ASSIGN(const std::vector<MusicRequest> composed, engine_->compose(lm, requests, progress_of(job), job.cancel()));
  library_->used(MusicFileKind::kLanguageModel, lm);
  return std::vector<JobOutput>{json_output(composed)};
}

Result<std::vector<JobOutput>> LocalMusicService::run_synth(const RunningJob& job,
                                                            const std::vector<MusicRequest>& requests) {
  const MusicRequest& first = requests.front();
  SynthPaths paths;
  TRY_ASSIGN(paths.text_encoder, library_->file(MusicFileKind::kTextEncoder, {}, "text_encoder"));
  TRY_ASSIGN(paths.dit, library_->file(MusicFileKind::kDit, first.synth_model, "synth_model"));
  TRY_ASSIGN(paths.vae, library_->file(MusicFileKind::kVae, first.vae, "vae"));
  SynthJob work;
  work.requests = requests;
  TRY_ASSIGN(work.adapter, library_->adapter(first.adapter));
  TRY_ASSIGN(work.source, read_sound(job, "audio", "src_latents"));
  TRY_ASSIGN(work.timbre, read_sound(job, "ref_audio", "ref_latents"));
  TRY_ASSIGN(const std::vector<SynthTrack> tracks,
             engine_->synth(paths, std::move(work), progress_of(job), job.cancel()));
  library_->used(MusicFileKind::kDit, paths.dit);
  library_->used(MusicFileKind::kVae, paths.vae);
  std::vector<JobOutput> outputs;
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    job.progress("write", i, tracks.size());
    const std::string stem = fmt::format("track{}", i);
    TRY_ASSIGN(JobOutput audio, audio_output(stem, tracks[i], job.cancel()));
    outputs.push_back(std::move(audio));
    outputs.push_back(latent_output(stem + ".latent", tracks[i].latent));
  }
  return outputs;
}

Result<std::vector<JobOutput>> LocalMusicService::run_song(const RunningJob& job,
                                                           const std::vector<MusicRequest>& requests) {
  if (!library_->missing({.lm = true}).empty()) return run_synth(job, requests);
  TRY_ASSIGN(const std::string lm,
             library_->file(MusicFileKind::kLanguageModel, requests.front().lm_model, "lm_model"));
  TRY_ASSIGN(const std::vector<MusicRequest> composed, engine_->compose(lm, requests, progress_of(job), job.cancel()));
  library_->used(MusicFileKind::kLanguageModel, lm);
  return run_synth(job, composed);
}

Result<std::vector<JobOutput>> LocalMusicService::run_understand(const RunningJob& job, const MusicRequest& request) {
  TRY_ASSIGN(const std::string lm, library_->file(MusicFileKind::kLanguageModel, request.lm_model, "lm_model"));
  TRY_ASSIGN(const std::string dit, library_->file(MusicFileKind::kDit, request.synth_model, "synth_model"));
  TRY_ASSIGN(const std::string vae, library_->file(MusicFileKind::kVae, request.vae, "vae"));
  TRY_ASSIGN(const SynthSound sound, read_sound(job, "audio", "src_latents"));
  TRY_ASSIGN(const auto understood, engine_->understand(lm, dit, vae, sound, request, progress_of(job), job.cancel()));
  library_->used(MusicFileKind::kLanguageModel, lm);
  std::vector<JobOutput> outputs{json_output({understood.request})};
  if (sound.latent.empty()) outputs.push_back(latent_output("sound.latent", understood.latent));
  return outputs;
}

Result<std::vector<JobOutput>> LocalMusicService::run_vae(const RunningJob& job, const MusicRequest& request) {
  TRY_ASSIGN(const std::string vae, library_->file(MusicFileKind::kVae, request.vae, "vae"));
  TRY_ASSIGN(const SynthSound sound, read_sound(job, "audio", "src_latents"));
  if (sound.latent.empty()) {
    TRY_ASSIGN(const std::vector<float> latent, engine_->encode(vae, sound.audio, progress_of(job), job.cancel()));
    library_->used(MusicFileKind::kVae, vae);
    return std::vector<JobOutput>{latent_output("sound.latent", latent)};
  }
  SynthTrack track;
  track.request = request;
  TRY_ASSIGN(track.audio, engine_->decode(vae, sound.latent, progress_of(job), job.cancel()));
  library_->used(MusicFileKind::kVae, vae);
  TRY_ASSIGN(JobOutput audio, audio_output("sound", track, job.cancel()));
  std::vector<JobOutput> outputs;
  outputs.push_back(std::move(audio));
  return outputs;
}

}  // namespace hocket
