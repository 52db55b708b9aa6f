#include "engine/music_tools.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <span>

#include "audio/read.h"
#include "audio/resample.h"
#include "audio/write.h"
#include "music/model_file.h"
#include "music/pipelines/compose.h"
#include "music/pipelines/synth.h"
#include "music/pipelines/understand.h"
#include "music/vae/vae_decoder.h"
#include "music/vae/vae_encoder.h"

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

Tiling tiling_of(const MusicOptions& options) {
  return {options.vae_chunk_frames, options.vae_overlap_frames};
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

PlannerOptions planner_options(const MusicOptions& options) {
  return {options.device, options.max_seq, options.n_threads};
}

}  // namespace

Result<std::vector<std::string>> synth_to_files(const MusicOptions& options, const SynthFilesJob& job,
                                                const MusicProgressFunction& progress, const CancelToken& cancel) {
  TRY_ASSIGN(const MusicFiles files, find_music_files(options.files, {.text_encoder = true, .dit = true, .vae = true}));
  TRY_ASSIGN(const MusicCompute compute, MusicCompute::create(options.device, options.n_threads));
  SynthJob work;
  work.requests = job.requests;
  work.tiling = tiling_of(options);
  work.adapter = adapter_path(job);
  TRY_ASSIGN(work.source, load_sound(job.source));
  TRY_ASSIGN(work.timbre, load_sound(job.timbre));
  TRY_ASSIGN(const auto synth, SynthPipeline::open({files.text_encoder, files.dit, files.vae}, compute));
  TRY_ASSIGN(const std::vector<SynthTrack> tracks, synth->run(work, progress, cancel));

  std::vector<std::string> paths;
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    if (progress) progress({"write", i, tracks.size()});
    const std::string stem =
        without_extension(job.output) + (job.numbered || tracks.size() > 1 ? std::to_string(i) : std::string());
    const auto format = parse_audio_format(tracks[i].request.output_format);
    TRY_ASSIGN(const std::vector<std::byte> bytes, encode_track(tracks[i], cancel));
    paths.push_back(fmt::format("{}.{}", stem, audio_extension(format.value_or(AudioFormat::kMp3))));
    TRY(write_file(paths.back(), bytes));
    if (!job.keep_latents) continue;
    paths.push_back(stem + ".latent");
    TRY(write_file(paths.back(), write_latent(tracks[i].latent, LatentFormat::kFloat)));
  }
  return paths;
}

Result<std::vector<MusicRequest>> compose_requests(const MusicOptions& options,
                                                   const std::vector<MusicRequest>& requests,
                                                   const MusicProgressFunction& progress, const CancelToken& cancel) {
  TRY_ASSIGN(const MusicFiles files, find_music_files(options.files, {.lm = true}));
  TRY_ASSIGN(const auto planner, PlannerModel::load(files.lm, planner_options(options)));
  return compose(*planner, requests, progress, cancel);
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
  HeardSong song;
  {
    TRY_ASSIGN(const MusicCompute compute, MusicCompute::create(options.device, options.n_threads));
    TRY_ASSIGN(auto dit, DitFile::open(files.dit));
    TRY_ASSIGN(song, hear(std::move(dit), files.vae, given, tiling_of(options), compute, progress, cancel));
  }
  TRY_ASSIGN(const auto planner, PlannerModel::load(files.lm, planner_options(options)));
  return understand(*planner, song.codes, request, progress, cancel);
}

Result<void> encode_to_latent(const MusicOptions& options, const std::string& audio, const std::string& output,
                              LatentFormat format, const MusicProgressFunction& progress, const CancelToken& cancel) {
  TRY_ASSIGN(const MusicFiles files, find_music_files(options.files, {.vae = true}));
  TRY_ASSIGN(const StereoAudio sound, read_sound(audio));
  TRY_ASSIGN(const MusicCompute compute, MusicCompute::create(options.device, options.n_threads));
  TRY_ASSIGN(const auto file, open_music_file(files.vae, MusicFileKind::kVae));
  TRY_ASSIGN(const auto encoder, VaeEncoder::load(file, compute));
  if (encoder->n_channels() != static_cast<int64_t>(kLatentChannels))
    return Error(ErrorCode::kUnsupported,
                 fmt::format("latents of {} channels have no file format", encoder->n_channels()));
  TRY_ASSIGN(const std::vector<float> latent,
             encoder->encode(sound, tiling_of(options), cancel, [&](std::size_t done, std::size_t all) {
               if (progress) progress({"encode", done, all});
             }));
  return write_file(output, write_latent(latent, format));
}

Result<void> decode_from_latent(const MusicOptions& options, const std::string& latent, const std::string& output,
                                const MusicRequest& request, const MusicProgressFunction& progress,
                                const CancelToken& cancel) {
  TRY(request.check());
  TRY_ASSIGN(const MusicFiles files, find_music_files(options.files, {.vae = true}));
  TRY_ASSIGN(const SynthSound sound, load_sound({{}, latent}));
  TRY_ASSIGN(const MusicCompute compute, MusicCompute::create(options.device, options.n_threads));
  TRY_ASSIGN(const auto file, open_music_file(files.vae, MusicFileKind::kVae));
  TRY_ASSIGN(const auto decoder, VaeDecoder::load(file, compute));
  SynthTrack track;
  track.request = request;
  TRY_ASSIGN(track.audio,
             decoder->decode(sound.latent, tiling_of(options), cancel, [&](std::size_t done, std::size_t all) {
               if (progress) progress({"decode", done, all});
             }));
  TRY_ASSIGN(const std::vector<std::byte> bytes, encode_track(track, cancel));
  return write_file(output, bytes);
}

}  // namespace hocket
