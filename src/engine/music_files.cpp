#include "engine/music_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "music/model_file.h"
#include "store/model_folder.h"

namespace hocket {
namespace {

namespace fs = std::filesystem;

struct Kind {
  MusicFileKind kind;
  const char* flag;
  const char* what;
  std::string* path;
};

}  // namespace

Result<MusicFiles> find_music_files(MusicFiles files, const MusicNeeds& needs) {
  std::vector<Kind> missing;
  const auto want = [&](bool needed, Kind kind) {
    if (!needed) return;
    if (kind.path->empty()) {
      missing.push_back(kind);
    } else if (!files.folder.empty() && !fs::exists(*kind.path) && fs::exists(fs::path(files.folder) / *kind.path)) {
      *kind.path = (fs::path(files.folder) / *kind.path).string();
    }
  };
  want(needs.lm, {MusicFileKind::kLanguageModel, "--lm", "language model", &files.lm});
  want(needs.text_encoder, {MusicFileKind::kTextEncoder, "--text-encoder", "text encoder", &files.text_encoder});
  want(needs.dit, {MusicFileKind::kDit, "--dit", "DiT", &files.dit});
  want(needs.vae, {MusicFileKind::kVae, "--vae", "VAE", &files.vae});
  if (!missing.empty() && !files.folder.empty()) {
    const auto folder = ModelFolder::scan(files.folder);
    if (!folder) return Error(folder.error().code, folder.error().message, "--models");
    for (const Kind& kind : missing)
      if (const auto* first = folder->find(music_architecture(kind.kind), {})) *kind.path = first->path;
  }
  for (const Kind& kind : missing)
    if (kind.path->empty())
      return Error(ErrorCode::kNotFound,
                   files.folder.empty() ? fmt::format("no {}: give --models DIR or {} FILE", kind.what, kind.flag)
                                        : fmt::format("no {} (architecture {}) in {}; give {} FILE", kind.what,
                                                      music_architecture(kind.kind), files.folder, kind.flag),
                   kind.flag);
  return files;
}

}  // namespace hocket
