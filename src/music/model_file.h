// music/model_file.h: opens the files of ACE-Step models and tells their kinds apart.
//
// Threads  pure functions.
// Errors   those of GgufFile::open(); kBadModel when `general.architecture` is another than wanted.
// Source   ace-step.md §2.1.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "weights/gguf.h"

namespace hocket {

enum class MusicFileKind { kLanguageModel, kTextEncoder, kDit, kVae };

std::string_view music_architecture(MusicFileKind kind);  // "acestep-lm", …

Result<std::shared_ptr<const GgufFile>> open_music_file(const std::string& path, MusicFileKind kind);

}  // namespace hocket
