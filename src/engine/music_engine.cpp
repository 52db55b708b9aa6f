#include "engine/music_engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "music/latent_file.h"
#include "music/model_file.h"
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

template <class DryRun>
Result<std::shared_ptr<void>> MusicEngine::room_for(std::string_view what, const DryRun& dry_run,
                                                    const CancelToken& cancel) const {
  if (!options_.room) return std::shared_ptr<void>();
  MusicCompute measured = compute_;
  measured.meter = std::make_shared<MemoryMeter>();
  Residency residency(ResidencyPolicy::kStrict);
  TRY(dry_run(measured, residency));
  uint64_t most = 0;
  for (const NetworkMemory& network : measured.meter->networks()) most = std::max(most, network.total_bytes());
  return options_.room(what, most, cancel);
}

Result<MemoryPlan> MusicEngine::plan_planner(const std::string& path, const PlannerSize& size) const {
  TRY_ASSIGN(const auto declared, PlannerModel::declare(path, planner_options()));
  TRY_ASSIGN(const ComposeSize tokens, size(declared->tokenizer()));
  // Requests that have all codes already load the model and ask nothing of it.
  return declared->plan(std::max<std::size_t>(1, tokens.n_seqs), std::max<std::size_t>(1, tokens.n_tokens));
}

Result<std::shared_ptr<void>> MusicEngine::room_for_planner(const std::string& path, const PlannerSize& size,
                                                            const CancelToken& cancel) const {
  if (!options_.room) return std::shared_ptr<void>();
  TRY_ASSIGN(const MemoryPlan plan, plan_planner(path, size));
  return options_.room("the language model of music", plan.total_bytes(), cancel);
}

Result<std::shared_ptr<const PlannerModel>> MusicEngine::planner(const std::string& path) const {
  return models_->borrow<PlannerModel>("language model " + path,
                                       [&] { return PlannerModel::load(path, planner_options()); });
}

Result<std::vector<MusicRequest>> MusicEngine::compose(const std::string& lm, const std::vector<MusicRequest>& requests,
                                                       const MusicProgressFunction& progress,
                                                       const CancelToken& cancel) const {
  TRY_ASSIGN(const auto room,
             room_for_planner(lm, [&](const MusicTokenizer& t) { return compose_size(t, requests); }, cancel));
  TRY_ASSIGN(const auto model, planner(lm));
  return hocket::compose(*model, requests, progress, cancel);
}

Result<MemoryPlan> MusicEngine::plan_compose(const std::string& lm, const std::vector<MusicRequest>& requests) const {
  return plan_planner(lm, [&](const MusicTokenizer& t) { return compose_size(t, requests); });
}

Result<std::vector<SynthTrack>> MusicEngine::synth(const SynthPaths& paths, SynthJob job,
                                                   const MusicProgressFunction& progress,
                                                   const CancelToken& cancel) const {
  std::shared_ptr<void> room;
  if (options_.room) {
    TRY_ASSIGN(const SynthMemory memory, plan_synth(paths, job, cancel));
    TRY_ASSIGN(room, options_.room("the song", memory.total_bytes(models_->policy()), cancel));
  }
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
  HeardSong song;
  {
    const auto dry_run = [&](const MusicCompute& compute, Residency& models) -> Result<void> {
      TRY(hear(file, vae, sound, tiling(), compute, models, {}, cancel));
      return {};
    };
    TRY_ASSIGN(const auto room, room_for("the sound's encoders", dry_run, cancel));
    TRY_ASSIGN(song, hear(file, vae, sound, tiling(), compute_, *models_, progress, cancel));
  }
  const auto size = [&](const MusicTokenizer& tokenizer) -> Result<ComposeSize> {
    TRY_ASSIGN(const std::size_t n_tokens, understand_size(tokenizer, song.codes));
    return ComposeSize{1, n_tokens};
  };
  TRY_ASSIGN(const auto room, room_for_planner(lm, size, cancel));
  TRY_ASSIGN(const auto model, planner(lm));
  Understood understood;
  TRY_ASSIGN(understood.request, hocket::understand(*model, song.codes, request, progress, cancel));
  understood.latent = std::move(song.latent);
  return understood;
}

Result<std::vector<float>> MusicEngine::encode(const std::string& vae, const StereoAudio& audio,
                                               const MusicProgressFunction& progress, const CancelToken& cancel) const {
  TRY_ASSIGN(const auto file, open_music_file(vae, MusicFileKind::kVae));
  const auto dry_run = [&](const MusicCompute& compute, Residency&) -> Result<void> {
    TRY_ASSIGN(const auto measured, VaeEncoder::load(file, compute));
    TRY(measured->encode(audio, tiling(), cancel));
    return {};
  };
  TRY_ASSIGN(const auto room, room_for("the VAE", dry_run, cancel));
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
  const auto dry_run = [&](const MusicCompute& compute, Residency&) -> Result<void> {
    TRY_ASSIGN(const auto measured, VaeDecoder::load(file, compute));
    TRY(measured->decode(latent, tiling(), cancel));
    return {};
  };
  TRY_ASSIGN(const auto room, room_for("the VAE", dry_run, cancel));
  TRY_ASSIGN(const auto decoder,
             models_->borrow<VaeDecoder>("VAE decoder " + vae, [&] { return VaeDecoder::load(file, compute_); }));
  return decoder->decode(latent, tiling(), cancel, report_tiles(progress, "decode"));
}

}  // namespace hocket
