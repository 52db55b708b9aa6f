#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/music_flags.h"

namespace hocket {
namespace {

struct UnderstandFlags {
  MusicFlags music;
  SoundFile sound;
  std::string output;
};

int understand(const CLI::App& app, const UnderstandFlags& flags) {
  if (flags.sound.audio.empty() && flags.sound.latent.empty())
    return usage_failure("--src-audio FILE or --src-latent FILE is required");
  const auto requests = requests_of(app, flags.music, understanding_request());
  if (!requests) return report_failure(requests.error());
  if (requests->size() != 1) return usage_failure("understand takes one request");
  Result<MusicRequest> heard = MusicRequest();
  {
    MusicWork work(flags.music.quiet);
    heard = understand_sound(flags.music.options, flags.sound, requests->front(), work.progress(), work.cancel());
  }
  if (!heard) return report_failure(heard.error());
  if (flags.output.empty() || flags.output == "-") {
    fmt::print("{}\n", music_request_json(*heard));
    return 0;
  }
  const auto written = save_request(flags.output, *heard);
  return written ? 0 : report_failure(written.error());
}

}  // namespace

Command add_understand(CLI::App& root) {
  auto flags = std::make_shared<UnderstandFlags>();
  CLI::App* app = root.add_subcommand("understand", "describe a sound as a music request: metadata, lyrics, codes");
  add_music_file_flags(*app, flags->music, {.lm = true, .dit = true, .vae = true});
  auto* audio = app->add_option("--src-audio", flags->sound.audio, "WAV, FLAC, MP3 or Ogg file");
  app->add_option("--src-latent", flags->sound.latent, "the same as a latent file")->excludes(audio);
  app->add_option("-r,--request", flags->music.request_file, "JSON file with sampling fields and lm_seed");
  app->add_option("-o,--output", flags->output, "file for the request (default: standard output)");
  add_planner_flags(*app, flags->music);
  add_tile_flags(*app, flags->music);
  add_music_run_flags(*app, flags->music);
  return {app, [app, flags] { return understand(*app, *flags); }};
}

}  // namespace hocket
