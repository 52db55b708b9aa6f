#include "cli/music_flags.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "cli/text_input.h"

namespace hocket {

using std::chrono::steady_clock;

void add_music_file_flags(CLI::App& app, MusicFlags& flags, const MusicNeeds& needs) {
  MusicFiles& files = flags.options.files;
  app.add_option("--models", files.folder, "folder of ACE-Step GGUF files: the first of each kind, by name, is taken");
  if (needs.lm) app.add_option("--lm", files.lm, "language model file (acestep-lm)");
  if (needs.text_encoder) app.add_option("--text-encoder", files.text_encoder, "text encoder file (acestep-text-enc)");
  if (needs.dit) app.add_option("--dit", files.dit, "diffusion transformer file (acestep-dit)");
  if (needs.vae) app.add_option("--vae", files.vae, "VAE file (acestep-vae)");
}

void add_music_run_flags(CLI::App& app, MusicFlags& flags) {
  app.add_option("--device", flags.options.device, "device as --list-devices names it (default: the CPU)");
  app.add_option("-t,--threads", flags.options.n_threads, "threads (default: the physical cores)")
      ->check(CLI::Range(1, 1024));
  app.add_flag("-q,--quiet", flags.quiet, "no progress on stderr");
}

void add_tile_flags(CLI::App& app, MusicFlags& flags) {
  app.add_option("--vae-chunk", flags.options.vae_chunk_frames,
                 "latent frames that the VAE takes at once, 25 a second (default: as the free memory allows)")
      ->check(CLI::Range(1, 15'000));
  app.add_option("--vae-overlap", flags.options.vae_overlap_frames,
                 "frames that neighbouring windows share on each side; 10 and more are exact")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

void add_planner_flags(CLI::App& app, MusicFlags& flags) {
  app.add_option("--max-seq", flags.options.max_seq, "most tokens of a prompt and its answer")
      ->check(CLI::Range(256, 1 << 20))
      ->capture_default_str();
}

void add_request_flags(CLI::App& app, MusicFlags& flags) {
  app.add_option("-r,--request", flags.request_file, "request as a JSON file; \"-\" is standard input");
  app.add_option("--caption", flags.caption, "what the music is like; stands above the file's");
  app.add_option("--lyrics", flags.lyrics, "the lyrics, or [Instrumental]");
  app.add_option("--lyrics-file", flags.lyrics_file, "file with the lyrics")->excludes("--lyrics");
  app.add_option("--duration", flags.duration, "length in seconds")->check(CLI::Range(0.0, 600.0));
  app.add_option("--seed", flags.seed, "seed of the noise (default: random)")->check(CLI::Range(0.0, 4294967295.0));
}

namespace {

// By flag, environment or file; false when the command has no such flag.
bool given(const CLI::App& app, const char* flag) {
  const CLI::Option* option = app.get_option_no_throw(flag);
  return option != nullptr && option->count() > 0;
}

}  // namespace

Result<std::vector<MusicRequest>> requests_of(const CLI::App& app, const MusicFlags& flags,
                                              const MusicRequest& defaults) {
  std::vector<MusicRequest> requests{defaults};
  if (!flags.request_file.empty()) {
    TRY_ASSIGN(const std::string text, read_text(flags.request_file));
    auto parsed = parse_music_requests(text, defaults);
    if (!parsed.ok())
      return Error(ErrorCode::kInvalid, fmt::format("{}: {}", flags.request_file, parsed.error().message));
    requests = *std::move(parsed);
  }
  std::string lyrics = flags.lyrics;
  if (!flags.lyrics_file.empty()) {
    TRY_ASSIGN(lyrics, read_text(flags.lyrics_file));
  }
  for (MusicRequest& request : requests) {
    if (given(app, "--caption")) request.caption = flags.caption;
    if (given(app, "--lyrics") || given(app, "--lyrics-file")) request.lyrics = lyrics;
    if (given(app, "--duration")) request.duration = static_cast<float>(flags.duration);
    if (given(app, "--seed")) request.seed = flags.seed;
  }
  return requests;
}

std::string request_stem(const MusicFlags& flags) {
  std::string stem = flags.request_file;
  if (stem.empty() || stem == "-") return "request";
  if (stem.ends_with(".json")) stem.resize(stem.size() - 5);
  return stem;
}

MusicWork::MusicWork(bool quiet) : shown_(!quiet), stage_began_(steady_clock::now()) {}

MusicWork::~MusicWork() {
  if (line_open_) fmt::print(stderr, "\n");
}

MusicProgressFunction MusicWork::progress() {
  return [this](const MusicProgress& progress) { show(progress); };
}

void MusicWork::show(const MusicProgress& progress) {
  if (!shown_) return;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (stage_ != progress.stage) {
    if (line_open_) fmt::print(stderr, "\n");
    line_open_ = false;
    stage_ = progress.stage;
    stage_began_ = steady_clock::now();
  }
  const double seconds = std::chrono::duration<double>(steady_clock::now() - stage_began_).count();
  std::string line = fmt::format("{:<10} {}", progress.stage, progress.step);
  if (progress.steps > 0) line += fmt::format("/{}", progress.steps);
  if (progress.step > 0 && progress.steps > progress.step)
    line += fmt::format("  {:.0f} s left", seconds / static_cast<double>(progress.step) *
                                               static_cast<double>(progress.steps - progress.step));
  if (terminal) {
    fmt::print(stderr, "\r{:<60}", line);
    std::fflush(stderr);
    line_open_ = true;
  } else if (progress.steps > 0 && progress.step == progress.steps) {
    fmt::print(stderr, "{}  {:.1f} s\n", line, seconds);
  }
}

}  // namespace hocket
