// engine/music_library.h: the music models and adapters of a server: what there is, and which file a name means.
//
// A name that is empty means the chosen default, else the one that was used last, where networks stay in memory, else
// the first.
//
// Owns     names and paths, the settings of DiT files that were asked for.
// Threads  any; rescan() while others ask.
// Errors   open(), rescan(): kIo naming the folder. open(): kNotFound for a default that is not there. file():
// kNotFound (reason "model_not_found") naming the field. Source   ace-step.md §§10.5, 13.1, A-1.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/music_files.h"
#include "music/dit/dit_file.h"
#include "music/model_file.h"
#include "store/model_folder.h"

namespace hocket {

struct MusicInventory {
  std::vector<std::string> lm, text_encoder, dit, vae, adapters;
};

struct MusicLibraryOptions {
  std::string folder, adapters;                   // adapters "": none
  std::map<MusicFileKind, std::string> defaults;  // names; what is not here or "" has none
  bool sticky = false;                            // the name used last is the default
};

class MusicLibrary {
 public:
  static Result<std::unique_ptr<MusicLibrary>> open(MusicLibraryOptions options);
  Result<void> rescan();

  // The first of each kind is the default at the start.
  MusicInventory inventory() const;
  // The kinds that are needed and not there: "lm", "text-encoder", "dit", "vae".
  std::vector<std::string> missing(const MusicNeeds& needs) const;
  // `field` of a request had the name.
  Result<std::string> file(MusicFileKind kind, const std::string& name, const char* field) const;
  // The file or folder of an adapter; "" for "".
  Result<std::string> adapter(const std::string& name) const;
  // It did its work.
  void used(MusicFileKind kind, const std::string& path);

  Result<std::shared_ptr<const DitFile>> dit(const std::string& path);

 private:
  explicit MusicLibrary(MusicLibraryOptions options) : options_(std::move(options)) {}
  std::string default_name(MusicFileKind kind) const;

  const MusicLibraryOptions options_;
  mutable std::mutex mutex_;
  std::optional<ModelFolder> models_;
  std::vector<std::string> adapters_;
  std::map<MusicFileKind, std::string> last_;  // paths
  std::map<std::string, std::shared_ptr<const DitFile>> dits_;
};

}  // namespace hocket
