#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/music_flags.h"

namespace hocket {
namespace {

struct VaeFlags {
  MusicFlags music;
  bool encode = false, decode = false, q8 = false, q4 = false;
  std::string input, output, format = "wav32";
  int bitrate = 128, peak_clip = 10;
};

int vae(const VaeFlags& flags) {
  if (flags.encode == flags.decode) return usage_failure("one of --encode and --decode is required");
  if (flags.input.empty() || flags.output.empty()) return usage_failure("-i FILE and -o FILE are required");
  Result<void> done;
  {
    MusicWork work(flags.music.quiet);
    if (flags.encode) {
      const LatentFormat format = flags.q8   ? LatentFormat::kNac8
                                  : flags.q4 ? LatentFormat::kNac4
                                             : LatentFormat::kFloat;
      done = encode_to_latent(flags.music.options, flags.input, flags.output, format, work.progress(), work.cancel());
    } else {
      MusicRequest request;
      request.output_format = flags.format;
      request.mp3_bitrate = flags.bitrate;
      request.peak_clip = flags.peak_clip;
      done =
          decode_from_latent(flags.music.options, flags.input, flags.output, request, work.progress(), work.cancel());
    }
  }
  return done ? 0 : report_failure(done.error());
}

}  // namespace

Command add_vae(CLI::App& root) {
  auto flags = std::make_shared<VaeFlags>();
  CLI::App* app = root.add_subcommand("vae", "turn sound into a music model's latent, or back");
  add_music_file_flags(*app, flags->music, {.vae = true});
  auto* encode = app->add_flag("--encode", flags->encode, "sound to latent");
  app->add_flag("--decode", flags->decode, "latent to sound")->excludes(encode);
  app->add_option("-i,--input", flags->input, "WAV, FLAC, MP3 or Ogg file, or a latent file");
  app->add_option("-o,--output", flags->output, "file to write");
  auto* q8 = app->add_flag("--q8", flags->q8, "latent of 8 bits a value");
  app->add_flag("--q4", flags->q4, "latent of 4 bits a value")->excludes(q8);
  app->add_option("--format", flags->format, "of the sound: mp3, wav16, wav24, wav32 or flac; wav32 is not normalised")
      ->capture_default_str();
  app->add_option("--bitrate", flags->bitrate, "kbit/s of MP3")->capture_default_str();
  app->add_option("--peak-clip", flags->peak_clip, "millionths of the samples that normalising may limit")
      ->capture_default_str();
  add_tile_flags(*app, flags->music);
  add_music_run_flags(*app, flags->music);
  return {app, [flags] { return vae(*flags); }};
}

}  // namespace hocket
