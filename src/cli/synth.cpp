#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/model_flags.h"
#include "cli/music_flags.h"
#include "engine/process_usage.h"

namespace hocket {
namespace {

struct SynthFlags {
  MusicFlags music;
  SynthFilesJob job;
  std::string format;
  int steps = 0, tracks = 0, bitrate = 0;
  float adapter_scale = 1;
  bool plan = false;
};

// The format that a file's ending asks for, where the request has one of another ending; "" for endings of no format.
std::string format_for(const std::string& output, const std::string& format) {
  const std::size_t dot = output.rfind('.');
  if (dot == std::string::npos || output.find('/', dot) != std::string::npos) return format;
  const std::string ending = output.substr(dot + 1);
  if (ending == "wav") return format.starts_with("wav") ? format : "wav16";
  return ending == "mp3" || ending == "flac" ? ending : std::string();
}

int print_plan(const MusicOptions& options, const SynthFilesJob& job) {
  const MusicWork work(/*quiet=*/true);
  const auto memory = plan_synth(options, job, work.cancel());
  if (!memory) return report_failure(memory.error());
  const auto mib = [](uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  fmt::print("{:<18} {:>14} {:>14} {:>14}\n", "network", "weights", "compute", "total");
  for (const NetworkMemory& network : memory->networks)
    fmt::print("{:<18} {:>10.1f} MiB {:>10.1f} MiB {:>10.1f} MiB\n", network.network, mib(network.weight_bytes),
               mib(network.compute_bytes), mib(network.total_bytes()));
  // The program itself with what it read of the files to plan: tokenizers, lists of tensors.
  const uint64_t program = process_usage().rss_bytes;
  fmt::print("{:<48} {:>10.1f} MiB\n", "program", mib(program));
  fmt::print("{:<48} {:>10.1f} MiB\n", "sound", mib(memory->sound_bytes));
  fmt::print("{:<48} {:>10.1f} MiB\n", "most, with one network at a time",
             mib(program + memory->total_bytes(ResidencyPolicy::kStrict)));
  fmt::print("{:<48} {:>10.1f} MiB\n", "most, with all of them kept (--keep-music-models)",
             mib(program + memory->total_bytes(ResidencyPolicy::kKeep)));
  return 0;
}

int synth(const CLI::App& app, const SynthFlags& flags) {
  auto requests = requests_of(app, flags.music);
  if (!requests) return report_failure(requests.error());
  for (MusicRequest& request : *requests) {
    if (app.count("--format") > 0) {
      request.output_format = flags.format;
    } else if (!flags.job.output.empty()) {
      request.output_format = format_for(flags.job.output, request.output_format);
      if (request.output_format.empty()) return usage_failure("-o names no .mp3, .wav or .flac file; give --format");
    }
    if (app.count("--steps") > 0) request.inference_steps = flags.steps;
    if (app.count("--tracks") > 0) request.synth_batch_size = flags.tracks;
    if (app.count("--bitrate") > 0) request.mp3_bitrate = flags.bitrate;
    if (app.count("--adapter-scale") > 0) request.adapter_scale = flags.adapter_scale;
  }
  SynthFilesJob job = flags.job;
  job.requests = *requests;
  if (flags.plan) return print_plan(flags.music.options, job);
  // Without a name of its own a song is called after its request, numbered as other tools of this format do.
  job.numbered = job.output.empty();
  if (job.output.empty()) job.output = request_stem(flags.music) + ".audio";
  Result<std::vector<std::string>> written = std::vector<std::string>();
  {
    MusicWork work(flags.music.quiet);
    written = synth_to_files(flags.music.options, job, work.progress(), work.cancel());
  }
  if (!written) return report_failure(written.error());
  for (const std::string& path : *written) fmt::print("{}\n", path);
  return 0;
}

}  // namespace

Command add_synth(CLI::App& root) {
  auto flags = std::make_shared<SynthFlags>();
  CLI::App* app = root.add_subcommand("synth", "make songs: text, lyrics and audio codes become sound");
  add_music_file_flags(*app, flags->music, {.text_encoder = true, .dit = true, .vae = true});
  add_request_flags(*app, flags->music);
  app->add_option("-o,--output", flags->job.output, "file of the song (default: the request's name and a number)");
  app->add_option("--format", flags->format,
                  "mp3, wav16, wav24, wav32 or flac (default: by the file's ending, else the request's, mp3)");
  app->add_option("--bitrate", flags->bitrate, "kbit/s of MP3: 32 to 320 (default: the request's, 128)");
  app->add_option("--steps", flags->steps, "steps of the sampler (default: 8 for turbo models, else 50)")
      ->check(CLI::Range(1, 100));
  app->add_option("--tracks", flags->tracks, "tracks with neighbouring seeds")->check(CLI::Range(1, 9));
  auto* audio = app->add_option("--src-audio", flags->job.source.audio,
                                "sound that the task works on (cover, repaint, lego, extract, complete)");
  app->add_option("--src-latent", flags->job.source.latent, "the same as a latent file")->excludes(audio);
  auto* timbre = app->add_option("--ref-audio", flags->job.timbre.audio, "sound whose timbre is taken up");
  app->add_option("--ref-latent", flags->job.timbre.latent, "the same as a latent file")->excludes(timbre);
  app->add_flag("--keep-latent", flags->job.keep_latents, "write each track's latent beside it");
  app->add_option("--adapter", flags->job.adapter, "LoRA or LoKr adapter: a .safetensors file or its folder");
  app->add_option("--adapters", flags->job.adapter_folder, "folder in which requests name their adapters");
  app->add_option("--adapter-scale", flags->adapter_scale, "how much of it (default: the request's, 1)");
  app->add_flag("--plan", flags->plan, "print the memory that the song would take, and make nothing");
  add_tile_flags(*app, flags->music);
  add_music_run_flags(*app, flags->music);
  return {app, [app, flags] { return synth(*app, *flags); }};
}

}  // namespace hocket
