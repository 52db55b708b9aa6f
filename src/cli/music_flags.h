// cli/music_flags.h: flags that the commands for music share, what they ask for, and how they show their progress.
//
// Threads  the main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "cli/interruptible.h"
#include "engine/music_tools.h"

namespace hocket {

struct MusicFlags {
  MusicOptions options;
  std::string request_file;
  std::string caption, lyrics, lyrics_file;
  double duration = 0;
  int64_t seed = -1;
  bool quiet = false;
  bool list_devices = false;
};

// --models, and the kinds of files that the command needs.
void add_music_file_flags(CLI::App& app, MusicFlags& flags, const MusicNeeds& needs);
// --device, --threads, --quiet.
void add_music_run_flags(CLI::App& app, MusicFlags& flags);
// --vae-chunk, --vae-overlap.
void add_tile_flags(CLI::App& app, MusicFlags& flags);
void add_planner_flags(CLI::App& app, MusicFlags& flags);
// --request and the fields that are worth a flag.
void add_request_flags(CLI::App& app, MusicFlags& flags);

// The requests of the file (or one with defaults), with the flags that were given on top.
Result<std::vector<MusicRequest>> requests_of(const CLI::App& app, const MusicFlags& flags,
                                              const MusicRequest& defaults = {});
// "song.json" → "song"; "request" without a file.
std::string request_stem(const MusicFlags& flags);

// While it exists Ctrl-C cancels the work, and progress shows on stderr.
class MusicWork {
 public:
  explicit MusicWork(bool quiet);
  ~MusicWork();
  MusicWork(const MusicWork&) = delete;
  MusicWork& operator=(const MusicWork&) = delete;

  const CancelToken& cancel() const { return interruptible_.cancel(); }
  MusicProgressFunction progress();

 private:
  void show(const MusicProgress& progress);

  const bool shown_;
  Interruptible interruptible_;
  std::string stage_;
  std::chrono::steady_clock::time_point stage_began_;
  bool line_open_ = false;
};

}  // namespace hocket
