// cli/music_serve_flags.h: the flags of `hocket serve` that make it a server for music, too.
//
// Threads  the main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "engine/music_service.h"

namespace hocket {

struct MusicServeFlags {
  std::string models, adapters;
  std::string lm, text_encoder, dit, vae;  // names of the defaults
  bool keep_models = false;
  MusicRunOptions run;
  int max_batch = 4;
  std::string job_folder;
  std::size_t max_jobs = 64;
  std::size_t job_results_mib = 1024;
  double job_keep_s = 3600;

  bool enabled() const { return !models.empty(); }
  MusicServiceOptions service() const;
};

void add_music_serve_flags(CLI::App& app, MusicServeFlags& flags);

}  // namespace hocket
