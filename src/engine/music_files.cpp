#include "engine/music_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "music/model_file.h"
#include "weights/gguf.h"

namespace hocket {
namespace {

namespace fs = std::filesystem;

struct Kind {
  MusicFileKind kind;
  const char* flag;
  const char* what;
  std::string* path;
};

Result<std::vector<std::string>> models_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".gguf" && it->is_regular_file(error)) paths.push_back(it->path().string());
  if (error)
    return Error(ErrorCode::kIo, fmt::format("cannot read folder {}: {}", folder, error.message()), "--models");
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string architecture_of(const std::string& path) {
  const auto file = GgufFile::open(path);
  if (!file.ok()) {
    log_warn("{} is left out: {}", path, file.error().message);
    return {};
  }
  const auto arch = (*file)->metadata().string("general.architecture");
  return arch.ok() ? *arch : std::string();
}

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
    TRY_ASSIGN(const std::vector<std::string> paths, models_in(files.folder));
    for (const std::string& path : paths) {
      const std::string arch = architecture_of(path);
      for (const Kind& kind : missing)
        if (kind.path->empty() && arch == music_architecture(kind.kind)) *kind.path = path;
    }
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
