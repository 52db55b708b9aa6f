#include "cli/music_serve_flags.h"

#include <fmt/format.h>

#include <chrono>

namespace hocket {

MusicServiceOptions MusicServeFlags::service() const {
  MusicServiceOptions options;
  options.models = models;
  options.adapters = adapters;
  options.defaults = {{MusicFileKind::kLanguageModel, lm},
                      {MusicFileKind::kTextEncoder, text_encoder},
                      {MusicFileKind::kDit, dit},
                      {MusicFileKind::kVae, vae}};
  options.run = run;
  options.residency = keep_models ? ResidencyPolicy::kKeep : ResidencyPolicy::kStrict;
  options.max_batch = max_batch;
  options.jobs.folder = job_folder;
  options.jobs.limits.max_pending = max_jobs;
  options.jobs.limits.max_result_bytes = static_cast<uint64_t>(job_results_mib) << 20;
  options.jobs.limits.keep = std::chrono::milliseconds(static_cast<int64_t>(job_keep_s * 1000));
  return options;
}

void add_music_serve_flags(CLI::App& app, MusicServeFlags& flags) {
  const std::string group = "Music";
  app.add_option("--music-models", flags.models, "folder of ACE-Step GGUF files: serve music, with or without -m")
      ->group(group);
  app.add_option("--music-adapters", flags.adapters, "folder of adapters that requests may name")->group(group);
  const auto add_default = [&](const char* name, std::string& value, const char* what) {
    app.add_option(name, value, fmt::format("{} for requests that name none (default: the first by name)", what))
        ->group(group);
  };
  add_default("--music-lm", flags.lm, "language model of the music folder");
  add_default("--music-text-encoder", flags.text_encoder, "text encoder");
  add_default("--music-dit", flags.dit, "transformer (synth_model)");
  add_default("--music-vae", flags.vae, "VAE");
  app.add_flag("--keep-music-models", flags.keep_models,
               "keep what was loaded once (default: one network in memory at a time)")
      ->group(group);
  app.add_option("--music-device", flags.run.device, "device for music (default: the CPU)")->group(group);
  app.add_option("--music-threads", flags.run.n_threads, "threads for music (default: the physical cores)")
      ->check(CLI::Range(1, 1024))
      ->group(group);
  app.add_option("--music-max-seq", flags.run.max_seq, "most tokens of a prompt and its answer")
      ->check(CLI::Range(256, 1 << 20))
      ->capture_default_str()
      ->group(group);
  app.add_option("--music-max-batch", flags.max_batch, "most requests or variations of one call to the language model")
      ->check(CLI::Range(1, 9))
      ->capture_default_str()
      ->group(group);
  app.add_option("--vae-chunk", flags.run.vae_chunk_frames,
                 "latent frames that the VAE takes at once, 25 a second (default: as the free memory allows)")
      ->check(CLI::Range(1, 15'000))
      ->group(group);
  app.add_option("--job-dir", flags.job_folder, "folder where jobs survive the server (default: they end with it)")
      ->group(group);
  app.add_option("--max-jobs", flags.max_jobs, "jobs that may wait")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str()
      ->group(group);
  app.add_option("--job-results", flags.job_results_mib, "MiB of results that are kept; the oldest go first")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str()
      ->group(group);
  app.add_option("--job-keep", flags.job_keep_s, "seconds that a result is kept")
      ->check(CLI::Range(1.0, 1e9))
      ->capture_default_str()
      ->group(group);
}

}  // namespace hocket
