// engine/music_files.h: which files make music: given one by one, or found in a folder by what they say they are.
//
// Threads  pure functions.
// Errors   kNotFound naming the kind that is missing; those of the files.
// Cost     the headers of the folder's *.gguf files.
// Source   ace-step.md §13.1.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace hocket {

struct MusicFiles {
  std::string folder;  // where the others are looked for
  std::string lm, text_encoder, dit, vae;
};

struct MusicNeeds {
  bool lm = false, text_encoder = false, dit = false, vae = false;
};

// `files` with every empty path that is needed filled from the folder: the first file of its kind, by name. A path
// without a folder in it is looked for in the folder, too.
Result<MusicFiles> find_music_files(MusicFiles files, const MusicNeeds& needs);

}  // namespace hocket
