#include "music/pipelines/synth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "audio/normalise.h"
#include "audio/write.h"
#include "base/log.h"
#include "music/dit/adapter.h"
#include "music/dit/dit.h"
#include "music/fsq/fsq_detokenizer.h"
#include "music/fsq/fsq_tokenizer.h"
#include "music/model_file.h"
#include "music/pipelines/context.h"
#include "music/pipelines/prompts.h"
#include "music/pipelines/track_batch.h"
#include "music/solvers/noise.h"
#include "music/solvers/sampler.h"
#include "music/vae/vae_decoder.h"
#include "music/vae/vae_encoder.h"

namespace hocket {

// What one run carries from stage to stage.
struct SynthPipeline::Work {
  const SynthJob& job;
  const MusicProgressFunction& progress;
  const CancelToken& cancel;
  SynthPlan plan;
  std::vector<SynthTrack> tracks;
  std::vector<std::vector<int32_t>> codes;  // of each track
  StereoAudio source_audio;                 // padded; empty without one
  std::vector<float> clean_source;          // [n_channels, n_source_frames], padded
  std::vector<float> source;                // the same after the round trip of a cover
  Conditioning conditioning, switch_conditioning;
  std::vector<float> contexts, switch_contexts;  // [2 · n_channels, n_frames, n_tracks]

  void report(std::string_view stage, std::size_t step, std::size_t steps) const {
    if (progress) progress({stage, step, steps});
  }
  TileProgress tiles(std::string_view stage) const {
    return [this, stage](std::size_t done, std::size_t all) { report(stage, done, all); };
  }
};

namespace {

Result<void> check_latent(std::span<const float> latent, int64_t n_channels, const char* field, int64_t max_frames) {
  if (latent.size() % static_cast<std::size_t>(n_channels) != 0)
    return Error(ErrorCode::kInvalid, fmt::format("{} is no whole number of frames of {} values", field, n_channels),
                 field);
  if (static_cast<int64_t>(latent.size()) / n_channels > max_frames)
    return Error(ErrorCode::kInvalid, fmt::format("{} exceeds max frames ({})", field, max_frames), field);
  for (const float value : latent)
    if (!std::isfinite(value))
      return Error(ErrorCode::kInvalid, fmt::format("{} contains non-finite values", field), field);
  return {};
}

StereoAudio pad_audio(const StereoAudio& audio, int64_t before, int64_t after) {
  StereoAudio padded;
  padded.rate_hz = audio.rate_hz;
  for (auto [from, to] : {std::pair(&audio.left, &padded.left), std::pair(&audio.right, &padded.right)}) {
    to->assign(static_cast<std::size_t>(before), 0.0f);
    to->insert(to->end(), from->begin(), from->end());
    to->insert(to->end(), static_cast<std::size_t>(after), 0.0f);
  }
  return padded;
}

}  // namespace

Result<SynthPlan> plan_tracks(const std::vector<MusicRequest>& tracks, const SourceLength& source, const DitFile& dit) {
  std::size_t n_codes = 0;
  for (const MusicRequest& track : tracks) n_codes = std::max(n_codes, parse_audio_codes(track.audio_codes).size());
  return plan_synth(tracks.front(), n_codes, source,
                    {dit.config().turbo, dit.config().patch, dit.n_silence_frames(), !dit.null_condition().empty()});
}

Result<std::unique_ptr<SynthPipeline>> SynthPipeline::open(const SynthPaths& paths, const MusicCompute& compute,
                                                           std::shared_ptr<Residency> models) {
  std::unique_ptr<SynthPipeline> synth(new SynthPipeline);
  synth->paths_ = paths;
  synth->compute_ = compute;
  synth->models_ = std::move(models);
  TRY_ASSIGN(synth->text_encoder_, open_music_file(paths.text_encoder, MusicFileKind::kTextEncoder));
  TRY_ASSIGN(synth->dit_, DitFile::open(paths.dit));
  TRY_ASSIGN(synth->vae_, open_music_file(paths.vae, MusicFileKind::kVae));
  TRY_ASSIGN(synth->tokenizer_, MusicTokenizer::load(synth->text_encoder_->metadata()));
  return synth;
}

Result<std::shared_ptr<const VaeEncoder>> SynthPipeline::vae_encoder() const {
  return models_->borrow<VaeEncoder>("VAE encoder " + paths_.vae, [&] { return VaeEncoder::load(vae_, compute_); });
}

Result<std::shared_ptr<const FsqDetokenizer>> SynthPipeline::fsq_detokenizer() const {
  return models_->borrow<FsqDetokenizer>("FSQ detokenizer " + paths_.dit,
                                         [&] { return FsqDetokenizer::load(dit_, compute_); });
}

Result<void> SynthPipeline::prepare_source(Work& work) const {
  if (!work.plan.from_source) {
    if (work.job.source.given())
      log_warn("task '{}' does not use the source that was given", work.tracks.front().request.task_type);
    return {};
  }
  const SynthSound& given = work.job.source;
  if (!given.latent.empty()) {
    work.clean_source = pad_latent(*dit_, given.latent, work.plan.pad_before, work.plan.pad_after);
  } else {
    work.source_audio = pad_audio(given.audio, work.plan.pad_before, work.plan.pad_after);
    TRY_ASSIGN(const auto encoder, vae_encoder());
    TRY_ASSIGN(work.clean_source,
               encoder->encode(work.source_audio, work.job.tiling, work.cancel, work.tiles("source")));
  }
  work.source = work.clean_source;
  if (!work.plan.round_trip) return {};
  std::vector<int32_t> codes;
  {
    TRY_ASSIGN(const auto tokenizer, models_->borrow<FsqTokenizer>("FSQ tokenizer " + paths_.dit,
                                                                   [&] { return FsqTokenizer::load(dit_, compute_); }));
    TRY_ASSIGN(codes, tokenizer->encode(work.clean_source, work.cancel));
  }
  TRY_ASSIGN(const auto detokenizer, fsq_detokenizer());
  TRY_ASSIGN(const std::vector<float> frames, detokenizer->decode(codes, work.cancel));
  std::copy_n(frames.begin(), std::min(frames.size(), work.source.size()), work.source.begin());
  return {};
}

Result<std::vector<float>> SynthPipeline::timbre_frames(const Work& work) const {
  const SynthSound& timbre = work.job.timbre;
  if (!timbre.latent.empty()) return timbre.latent;
  if (timbre.audio.n_samples() > 0) {
    TRY_ASSIGN(const auto encoder, vae_encoder());
    return encoder->encode(timbre.audio, work.job.tiling, work.cancel, work.tiles("timbre"));
  }
  const auto first = dit_->silence().begin();
  return std::vector<float>(first, first + dit_->config().n_channels);
}

Result<void> SynthPipeline::encode_text(Work& work) const {
  const std::size_t n = work.tracks.size();
  work.report("text", 0, 1);
  TRY_ASSIGN(const std::vector<float> timbre, timbre_frames(work));
  std::vector<SongText> songs;
  const auto add = [&](const std::string& instruction) {
    for (const SynthTrack& track : work.tracks)
      songs.push_back({text_prompt(track.request, instruction, work.plan.duration_s), lyric_prompt(track.request)});
  };
  add(work.plan.instruction);
  if (work.plan.switch_step) add(task_instruction("text2music", {}, false));
  TRY_ASSIGN(Conditioning all, encode_songs({text_encoder_, paths_.text_encoder, dit_, *models_}, *tokenizer_, songs,
                                            timbre, compute_, work.cancel));
  // All songs share a length, also those of the switch.
  const std::size_t half = static_cast<std::size_t>(all.n_rows * dit_->n_enc()) * n;
  const auto part = [&](std::size_t first) {
    Conditioning c;
    c.n_rows = all.n_rows;
    c.lengths.assign(all.lengths.begin() + static_cast<std::ptrdiff_t>(first * n),
                     all.lengths.begin() + static_cast<std::ptrdiff_t>((first + 1) * n));
    c.rows.assign(all.rows.begin() + static_cast<std::ptrdiff_t>(first * half),
                  all.rows.begin() + static_cast<std::ptrdiff_t>((first + 1) * half));
    return c;
  };
  work.conditioning = part(0);
  if (work.plan.switch_step) work.switch_conditioning = part(1);
  work.report("text", 1, 1);
  return {};
}

Result<void> SynthPipeline::build_contexts(Work& work) const {
  const SynthPlan& plan = work.plan;
  std::shared_ptr<const FsqDetokenizer> detokenizer;
  if (plan.from_codes) {
    work.report("codes", 0, 1);
    TRY_ASSIGN(detokenizer, fsq_detokenizer());
  }
  const std::vector<float> silent = silent_context(*dit_, plan.n_frames);
  for (std::size_t i = 0; i < work.tracks.size(); ++i) {
    std::vector<float> context = silent;
    if (plan.from_source) {
      context = source_context(*dit_, plan, work.tracks[i].request.task_type == "repaint", work.source);
    } else if (!work.codes[i].empty()) {
      TRY_ASSIGN(const std::vector<float> frames, detokenizer->decode(work.codes[i], work.cancel));
      context = code_context(*dit_, plan.n_frames, frames);
    }
    work.contexts.insert(work.contexts.end(), context.begin(), context.end());
    if (plan.switch_step) work.switch_contexts.insert(work.switch_contexts.end(), silent.begin(), silent.end());
  }
  return {};
}

Result<std::vector<float>> SynthPipeline::sample(Work& work) const {
  const SynthPlan& plan = work.plan;
  const DitConfig& config = dit_->config();
  const MusicRequest& shared = work.tracks.front().request;
  const std::size_t n = static_cast<std::size_t>(plan.n_frames * config.n_channels);

  SamplerOptions options;
  options.schedule = plan.schedule;
  options.solver = *parse_solver(shared.solver);
  options.guidance = plan.guided ? plan.guidance : 1.0f;
  options.wavelet = {*parse_wavelet_mode(shared.dcw_mode), shared.dcw_scaler, shared.dcw_high_scaler};
  options.n_channels = static_cast<std::size_t>(config.n_channels);
  std::vector<float> start;
  for (const SynthTrack& track : work.tracks) {
    options.seeds.push_back(static_cast<uint64_t>(track.request.seed));
    std::vector<float> noise = make_noise(options.seeds.back(), n);
    if (plan.start_level) {
      const float t = *plan.start_level;
      const auto n_channels = options.n_channels;
      for (std::size_t i = 0; i < n; ++i) {
        // Beyond its end the source's last frame goes on.
        const std::size_t from =
            i < work.clean_source.size() ? i : work.clean_source.size() - n_channels + i % n_channels;
        noise[i] = t * noise[i] + (1.0f - t) * work.clean_source[from];
      }
    }
    start.insert(start.end(), noise.begin(), noise.end());
  }

  work.report("diffusion", 0, plan.schedule.size());
  const auto load = [&]() -> Result<std::unique_ptr<Dit>> {
    std::shared_ptr<WeightSource> weights = std::make_shared<FileWeights>(dit_->gguf());
    if (!work.job.adapter.empty()) {
      TRY_ASSIGN(weights, AdaptedWeights::open(dit_->gguf(), work.job.adapter, shared.adapter_scale));
    }
    return Dit::load(dit_, weights, compute_);
  };
  std::string key = "DiT " + paths_.dit;
  if (!work.job.adapter.empty()) key += fmt::format(" with {} at {}", work.job.adapter, shared.adapter_scale);
  TRY_ASSIGN(const auto dit, models_->borrow<Dit>(key, load));
  std::unique_ptr<DitPass> pass;
  bool switched = false;
  const auto prepare = [&](const Conditioning& conditioning, const std::vector<float>& contexts) -> Result<void> {
    pass.reset();  // its memory first
    DitShape shape{plan.n_frames, conditioning.lengths, conditioning.n_rows};
    std::vector<float> rows = conditioning.rows, context = contexts;
    if (plan.guided) {
      // Conditional samples, then as many without conditioning.
      shape.enc_lengths.insert(shape.enc_lengths.end(), conditioning.lengths.begin(), conditioning.lengths.end());
      const std::vector<float> none = unconditional_rows(*dit_, conditioning);
      rows.insert(rows.end(), none.begin(), none.end());
      context.insert(context.end(), contexts.begin(), contexts.end());
    }
    TRY_ASSIGN(pass, DitPass::create(*dit, shape));
    pass->set_context(context);
    pass->set_conditioning(rows);
    return {};
  };
  const auto velocity = [&](std::span<const float> x, float t, std::size_t step) -> Result<std::vector<float>> {
    if (plan.switch_step && step >= *plan.switch_step && !switched) {
      TRY(prepare(work.switch_conditioning, work.switch_contexts));
      switched = true;
    } else if (!pass) {
      TRY(prepare(work.conditioning, work.contexts));
    }
    if (!plan.guided) return pass->run(x, t, work.cancel);
    std::vector<float> twice(x.begin(), x.end());
    twice.insert(twice.end(), x.begin(), x.end());
    return pass->run(twice, t, work.cancel);
  };
  const auto on_step = [&](std::size_t step, std::span<const float>, std::span<const float>) {
    work.report("diffusion", step + 1, plan.schedule.size());
  };
  return sample_latents(options, std::move(start), velocity, on_step, work.cancel);
}

Result<void> SynthPipeline::decode(Work& work, const std::vector<float>& latents) const {
  const SynthPlan& plan = work.plan;
  const int64_t n_channels = dit_->config().n_channels;
  const std::size_t n = static_cast<std::size_t>(plan.n_frames * n_channels);
  TRY_ASSIGN(const auto decoder, models_->borrow<VaeDecoder>("VAE decoder " + paths_.vae,
                                                             [&] { return VaeDecoder::load(vae_, compute_); }));
  if (decoder->n_channels() != n_channels)
    return Error(ErrorCode::kBadModel,
                 fmt::format("the VAE has {} latent channels, the DiT {}", decoder->n_channels(), n_channels),
                 "decoder.conv1.weight_v");
  const auto outside = [&](int64_t t) { return plan.from_region && (t < plan.region_first || t >= plan.region_last); };
  for (std::size_t i = 0; i < work.tracks.size(); ++i) {
    SynthTrack& track = work.tracks[i];
    const auto first = latents.begin() + static_cast<std::ptrdiff_t>(i * n);
    track.latent.assign(first, first + static_cast<std::ptrdiff_t>(n));
    const float scale = track.request.latent_rescale, shift = track.request.latent_shift;
    if (scale != 1.0f || shift != 0.0f)
      for (float& value : track.latent) value = value * scale + shift;
    for (std::size_t k = 0; k < std::min(n, work.clean_source.size()); ++k)
      if (outside(static_cast<int64_t>(k) / n_channels)) track.latent[k] = work.clean_source[k];
    const auto tiles = [&](std::size_t done, std::size_t all) {
      work.report("decode", i * all + done, work.tracks.size() * all);
    };
    TRY_ASSIGN(track.audio, decoder->decode(track.latent, work.job.tiling, work.cancel, tiles));
    const auto n_source = std::min(work.source_audio.n_samples(), track.audio.n_samples());
    for (std::size_t k = 0; k < n_source; ++k) {
      if (!outside(static_cast<int64_t>(k) / decoder->samples_per_frame())) continue;
      track.audio.left[k] = work.source_audio.left[k];
      track.audio.right[k] = work.source_audio.right[k];
    }
  }
  return {};
}

Result<std::vector<SynthTrack>> SynthPipeline::run(const SynthJob& job, const MusicProgressFunction& progress,
                                                   const CancelToken& cancel) const {
  Work work{job, progress, cancel, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  const int64_t n_channels = dit_->config().n_channels, max_frames = dit_->n_silence_frames();
  TRY(check_latent(job.source.latent, n_channels, "src_latents", max_frames));
  TRY(check_latent(job.timbre.latent, n_channels, "ref_latents", max_frames));
  TRY_ASSIGN(const std::vector<MusicRequest> requests, expand_tracks(job.requests));
  if (!requests.front().adapter.empty() && job.adapter.empty())
    return Error(ErrorCode::kNotFound, fmt::format("Unknown adapter '{}'", requests.front().adapter), "adapter");
  for (const MusicRequest& request : requests) {
    work.tracks.push_back({request, {}, {}});
    const std::vector<int64_t> codes = parse_audio_codes(request.audio_codes);
    work.codes.emplace_back(codes.begin(), codes.end());
  }
  SourceLength length;
  if (!job.source.latent.empty()) {
    length.n_frames = static_cast<int64_t>(job.source.latent.size()) / n_channels;
  } else {
    length.n_samples = static_cast<int64_t>(job.source.audio.n_samples());
  }
  TRY_ASSIGN(work.plan, plan_tracks(requests, length, *dit_));
  TRY(prepare_source(work));
  TRY(encode_text(work));
  TRY(build_contexts(work));
  TRY_ASSIGN(const std::vector<float> latents, sample(work));
  TRY(decode(work, latents));
  return std::move(work.tracks);
}

Result<SynthMemory> SynthPipeline::plan_memory(const SynthPaths& paths, const MusicCompute& compute,
                                               const SynthJob& job, const CancelToken& cancel) {
  MusicCompute measured = compute;
  measured.meter = std::make_shared<MemoryMeter>();
  TRY_ASSIGN(const auto pipeline, open(paths, measured));
  TRY_ASSIGN(const std::vector<SynthTrack> tracks, pipeline->run(job, {}, cancel));
  SynthMemory memory{measured.meter->networks(), 0};
  uint64_t most = 0;
  for (const SynthTrack& track : tracks) {
    const uint64_t n_bytes = 2 * track.audio.n_samples() * sizeof(float);
    memory.sound_bytes += n_bytes + track.latent.size() * sizeof(float);
    most = std::max(most, n_bytes);
  }
  memory.sound_bytes += 2 * most;  // the normalised copy, and the file as it grows
  return memory;
}

uint64_t SynthMemory::total_bytes(ResidencyPolicy policy) const {
  uint64_t weights = 0, compute = 0, strict = 0;
  for (const NetworkMemory& network : networks) {
    weights += network.weight_bytes;
    compute = std::max(compute, network.compute_bytes);
    strict = std::max(strict, network.total_bytes());
  }
  return sound_bytes + (policy == ResidencyPolicy::kStrict ? strict : weights + compute);
}

Result<std::vector<std::byte>> encode_track(const SynthTrack& track, const CancelToken& cancel) {
  const auto format = parse_audio_format(track.request.output_format);
  if (!format) return Error(ErrorCode::kInvalid, "unknown output_format", "output_format");
  StereoAudio audio = track.audio;
  // 32-bit float is what the model gave.
  if (*format != AudioFormat::kWav32) normalise_peak(audio, track.request.peak_clip);
  AudioEncoding encoding;
  encoding.format = *format;
  encoding.mp3_bitrate_kbps = track.request.mp3_bitrate;
  encoding.tags = {track.request.caption, music_request_json(track.request), "hocket"};
  return encode_audio(audio, encoding, cancel);
}

}  // namespace hocket
