#include "music/model_file.h"

#include <fmt/format.h>

namespace hocket {

std::string_view music_architecture(MusicFileKind kind) {
  switch (kind) {
    case MusicFileKind::kLanguageModel:
      return "acestep-lm";
    case MusicFileKind::kTextEncoder:
      return "acestep-text-enc";
    case MusicFileKind::kDit:
      return "acestep-dit";
    case MusicFileKind::kVae:
      return "acestep-vae";
  }
  return {};
}

Result<std::shared_ptr<const GgufFile>> open_music_file(const std::string& path, MusicFileKind kind) {
  TRY_ASSIGN(std::shared_ptr<const GgufFile> file, GgufFile::open(path));
  TRY_ASSIGN(const std::string arch, file->metadata().string("general.architecture"));
  if (arch != music_architecture(kind))
    return Error(ErrorCode::kBadModel,
                 fmt::format("{} is a model of architecture {}, not {}", path, arch, music_architecture(kind)),
                 "general.architecture");
  return file;
}

}  // namespace hocket
