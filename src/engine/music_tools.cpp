#include "engine/music_tools.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <span>

#include "audio/read.h"
#include "audio/resample.h"
#include "audio/write.h"
#include "music/pipelines/understand.h"
#include "music/vae/vae_blocks.h"

namespace hocket {
namespace {

constexpr std::size_t kMostLatentBytes = kMostLatentFrames * kLatentChannels * sizeof(float) + 1;

Result<std::vector<std::byte>> read_bytes(const std::string& path, std::size_t limit) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error(ErrorCode::kNotFound, fmt::format("cannot open {}", path), path);
  std::vector<std::byte> bytes(limit);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(limit));
  if (file.bad()) return Error(ErrorCode::kIo, fmt::format("cannot read {}", path), path);
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

Result<StereoAudio> read_sound(const std::string& path) {
  TRY_ASSIGN(StereoAudio audio, read_audio_file(path));
  return resample(std::move(audio), kMusicRateHz);
}

Result<SynthSound> load_sound(const SoundFile& file) {
  SynthSound sound;
  if (!file.latent.empty()) {
    TRY_ASSIGN(const std::vector<std::byte> bytes, read_bytes(file.latent, kMostLatentBytes));
    TRY_ASSIGN(sound.latent, read_latent(bytes, file.latent));
  } else if (!file.audio.empty()) {
    TRY_ASSIGN(sound.audio, read_sound(file.audio));
  }
  return sound;
}

std::string without_extension(const std::string& path) {
  const std::size_t dot = path.rfind('.'), slash = path.rfind('/');
  const bool has_one = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1) && dot > 0;
  return has_one ? path.substr(0, dot) : path;
}

// The adapter that was given, or the one that the requests name in the folder of adapters; "" when there is none.
std::string adapter_path(const SynthFilesJob& job) {
  if (!job.adapter.empty() || job.requests.empty() || job.adapter_folder.empty()) return job.adapter;
  const std::string& name = job.requests.front().adapter;
  const bool plain = !name.empty() && name != ".." && name.find('/') == std::string::npos;
  const std::filesystem::path path = std::filesystem::path(job.adapter_folder) / name;
  return plain && std::filesystem::exists(path) ? path.string() : std::string();
}

Result<SynthPaths> synth_paths(const MusicOptions& options) {
  TRY_ASSIGN(const MusicFiles files, find_music_files(options.files, {.text_encoder = true, .dit = true, .vae = true}));
  return SynthPaths{files.text_encoder, files.dit, files.vae};
}

Result<SynthJob> load_job(const SynthFilesJob& job) {
  SynthJob work;
  work.requests = job.requests;
  work.adapter = adapter_path(job);
  TRY_ASSIGN(work.source, load_sound(job.source));
  TRY_ASSIGN(work.timbre, load_sound(job.timbre));
  return work;
}

// For one call: a network goes after its use.
Result<std::unique_ptr<MusicEngine>> engine_for(const MusicOptions& options) {
  return MusicEngine::create(options, ResidencyPolicy::kStrict);
}

}  // namespace

Result<SynthMemory> plan_synth(const MusicOptions& options, const SynthFilesJob& job, const CancelToken& cancel) {
  TRY_ASSIGN(const SynthPaths paths, synth_paths(options));
  TRY_ASSIGN(const auto engine, engine_for(options));
  TRY_ASSIGN(SynthJob work, load_job(job));
  return engine->plan_synth(paths, std::move(work), cancel);
}

Result<std::vector<std::string>> synth_to_files(const MusicOptions& options, const SynthFilesJob& job,
                                                const MusicProgressFunction& progress, const CancelToken& cancel) {
  TRY_ASSIGN(const SynthPaths paths, synth_paths(options));
  TRY_ASSIGN(const auto engine, engine_for(options));
  TRY_ASSIGN(SynthJob work, load_job(job));
  TRY_ASSIGN(const std::vector<SynthTrack> tracks, engine->synth(paths, std::move(work), progress, cancel));

  std::vector<std::string> written;
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    if (progress) progress({"write", i, tracks.size()});
    const std::string stem =
        without_extension(job.output) + (job.numbered || tracks.size() > 1 ? std::to_string(i) : std::string());
    const auto format = parse_audio_format(tracks[i].request.output_format);
    TRY_ASSIGN(const std::vector<std::byte> bytes, encode_track(tracks[i], cancel));
    written.push_back(fmt::format("{}.{}", stem, audio_extension(format.value_or(AudioFormat::kMp3))));
    TRY(write_file(written.back(), bytes));
    if (!job.keep_latents) continue;
    written.push_back(stem + ".latent");
    TRY(write_file(written.back(), write_latent(tracks[i].latent, LatentFormat::kFloat)));
  }
  return written;
}

Result<std::vector<MusicRequest>> compose_requests(const MusicOptions& options,
                                                   const std::vector<MusicRequest>& requests,
                                                   const MusicProgressFunction& progress, const CancelToken& cancel) {
  TRY_ASSIGN(const MusicFiles files, find_music_files(options.files, {.lm = true}));
  TRY_ASSIGN(const auto engine, engine_for(options));
  return engine->compose(files.lm, requests, progress, cancel);
}

Result<MemoryPlan> plan_compose(const MusicOptions& options, const std::vector<MusicRequest>& requests) {
  TRY_ASSIGN(const MusicFiles files, find_music_files(options.files, {.lm = true}));
  TRY_ASSIGN(const auto engine, engine_for(options));
  return engine->plan_compose(files.lm, requests);
}

Result<void> save_request(const std::string& path, const MusicRequest& request) {
  const std::string text = music_request_json(request) + "\n";
  return write_file(path, std::as_bytes(std::span(text)));
}

MusicRequest understanding_request() {
  return understand_defaults();
}

Result<MusicRequest> understand_sound(const MusicOptions& options, const SoundFile& sound, const MusicRequest& request,
                                      const MusicProgressFunction& progress, const CancelToken& cancel) {
  TRY_ASSIGN(const MusicFiles files,
             find_music_files(options.files, {.lm = true, .dit = true, .vae = sound.latent.empty()}));
  TRY_ASSIGN(const SynthSound given, load_sound(sound));
  TRY_ASSIGN(const auto engine, engine_for(options));
  TRY_ASSIGN(auto understood, engine->understand(files.lm, files.dit, files.vae, given, request, progress, cancel));
  return std::move(understood.request);
}

Result<void> encode_to_latent(const MusicOptions& options, const std::string& audio, const std::string& output,
                              LatentFormat format, const MusicProgressFunction& progress, const CancelToken& cancel) {
  TRY_ASSIGN(const MusicFiles files, find_music_files(options.files, {.vae = true}));
  TRY_ASSIGN(const StereoAudio sound, read_sound(audio));
  TRY_ASSIGN(const auto engine, engine_for(options));
  TRY_ASSIGN(const std::vector<float> latent, engine->encode(files.vae, sound, progress, cancel));
  return write_file(output, write_latent(latent, format));
}

Result<void> decode_from_latent(const MusicOptions& options, const std::string& latent, const std::string& output,
                                const MusicRequest& request, const MusicProgressFunction& progress,
                                const CancelToken& cancel) {
  TRY(request.check());
  TRY_ASSIGN(const MusicFiles files, find_music_files(options.files, {.vae = true}));
  TRY_ASSIGN(const SynthSound sound, load_sound({{}, latent}));
  TRY_ASSIGN(const auto engine, engine_for(options));
  SynthTrack track;
  track.request = request;
  TRY_ASSIGN(track.audio, engine->decode(files.vae, sound.latent, progress, cancel));
  TRY_ASSIGN(const std::vector<std::byte> bytes, encode_track(track, cancel));
  return write_file(output, bytes);
}

}  // namespace hocket
