#include "engine/music_engine.h"

#include <fmt/format.h>

#include "music/latent_file.h"
#include "music/model_file.h"
#include "music/pipelines/compose.h"
#include "music/pipelines/understand.h"
#include "music/vae/vae_decoder.h"
#include "music/vae/vae_encoder.h"

namespace hocket {
namespace {

TileProgress report_tiles(const MusicProgressFunction& progress, std::string_view stage) {
  return [&progress, stage](std::size_t done, std::size_t all) {
    if (progress) progress({stage, done, all});
  };
}

}  // namespace

Result<std::unique_ptr<MusicEngine>> MusicEngine::create(const MusicRunOptions& options, ResidencyPolicy policy) {
  std::unique_ptr<MusicEngine> engine(new MusicEngine(options, policy));
  TRY_ASSIGN(engine->compute_, MusicCompute::create(options.device, options.n_threads));
  return engine;
}

Result<std::shared_ptr<const PlannerModel>> MusicEngine::planner(const std::string& path) const {
  return models_->borrow<PlannerModel>("language model " + path, [&] {
    return PlannerModel::load(path, {options_.device, options_.max_seq, options_.n_threads});
  });
}

Result<std::vector<MusicRequest>> MusicEngine::compose(const std::string& lm, const std::vector<MusicRequest>& requests,
                                                       const MusicProgressFunction& progress,
                                                       const CancelToken& cancel) const {
  TRY_ASSIGN(const auto model, planner(lm));
  return hocket::compose(*model, requests, progress, cancel);
}

Result<std::vector<SynthTrack>> MusicEngine::synth(const SynthPaths& paths, SynthJob job,
                                                   const MusicProgressFunction& progress,
                                                   const CancelToken& cancel) const {
  job.tiling = tiling();
  TRY_ASSIGN(const auto pipeline, SynthPipeline::open(paths, compute_, models_));
  return pipeline->run(job, progress, cancel);
}

Result<SynthMemory> MusicEngine::plan_synth(const SynthPaths& paths, SynthJob job, const CancelToken& cancel) const {
  job.tiling = tiling();
  return SynthPipeline::plan_memory(paths, compute_, job, cancel);
}

Result<MusicEngine::Understood> MusicEngine::understand(const std::string& lm, const std::string& dit,
                                                        const std::string& vae, const SynthSound& sound,
                                                        const MusicRequest& request,
                                                        const MusicProgressFunction& progress,
                                                        const CancelToken& cancel) const {
  TRY_ASSIGN(const auto file, DitFile::open(dit));
  TRY_ASSIGN(HeardSong song, hear(file, vae, sound, tiling(), compute_, *models_, progress, cancel));
  TRY_ASSIGN(const auto model, planner(lm));
  Understood understood;
  TRY_ASSIGN(understood.request, hocket::understand(*model, song.codes, request, progress, cancel));
  understood.latent = std::move(song.latent);
  return understood;
}

Result<std::vector<float>> MusicEngine::encode(const std::string& vae, const StereoAudio& audio,
                                               const MusicProgressFunction& progress, const CancelToken& cancel) const {
  TRY_ASSIGN(const auto file, open_music_file(vae, MusicFileKind::kVae));
  TRY_ASSIGN(const auto encoder,
             models_->borrow<VaeEncoder>("VAE encoder " + vae, [&] { return VaeEncoder::load(file, compute_); }));
  if (encoder->n_channels() != static_cast<int64_t>(kLatentChannels))
    return Error(ErrorCode::kUnsupported,
                 fmt::format("latents of {} channels have no file format", encoder->n_channels()));
  return encoder->encode(audio, tiling(), cancel, report_tiles(progress, "encode"));
}

Result<StereoAudio> MusicEngine::decode(const std::string& vae, std::span<const float> latent,
                                        const MusicProgressFunction& progress, const CancelToken& cancel) const {
  TRY_ASSIGN(const auto file, open_music_file(vae, MusicFileKind::kVae));
  TRY_ASSIGN(const auto decoder,
             models_->borrow<VaeDecoder>("VAE decoder " + vae, [&] { return VaeDecoder::load(file, compute_); }));
  return decoder->decode(latent, tiling(), cancel, report_tiles(progress, "decode"));
}

}  // namespace hocket
