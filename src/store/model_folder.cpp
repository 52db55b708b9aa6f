#include "store/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/log.h"
#include "weights/gguf.h"

namespace hocket {
namespace {

constexpr std::string_view kExtension = ".gguf";

}  // namespace

Result<ModelFolder> ModelFolder::scan(const std::filesystem::path& folder) {
  ModelFolder found;
  found.folder_ = folder;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code no_file;
    if (it->path().extension() != kExtension || !it->is_regular_file(no_file)) continue;
    const std::string path = it->path().string();
    const auto file = GgufFile::open(path);
    const auto architecture =
        file ? (*file)->metadata().string("general.architecture") : Result<std::string>(file.error());
    if (!architecture) {
      log_warn("{} is left out: {}", path, architecture.error().message);
      continue;
    }
    const auto title = (*file)->metadata().string("general.name");
    found.files_.push_back({it->path().filename().string(), path, *architecture, title ? *title : std::string()});
  }
  if (error)
    return Error(ErrorCode::kIo, fmt::format("cannot read folder {}: {}", folder.string(), error.message()),
                 folder.string());
  std::sort(found.files_.begin(), found.files_.end(),
            [](const ModelFileEntry& a, const ModelFileEntry& b) { return a.name < b.name; });
  return found;
}

std::vector<const ModelFileEntry*> ModelFolder::of(std::string_view architecture) const {
  std::vector<const ModelFileEntry*> list;
  for (const ModelFileEntry& file : files_)
    if (file.architecture == architecture) list.push_back(&file);
  return list;
}

const ModelFileEntry* ModelFolder::find(std::string_view architecture, std::string_view name) const {
  const std::vector<const ModelFileEntry*> list = of(architecture);
  if (name.empty()) return list.empty() ? nullptr : list.front();
  const auto first = [&](const auto& same) {
    const auto it = std::find_if(list.begin(), list.end(), same);
    return it == list.end() ? nullptr : *it;
  };
  if (const auto* file = first([&](const auto* f) { return f->name == name; })) return file;
  const std::string with_extension = std::string(name) + std::string(kExtension);
  if (const auto* file = first([&](const auto* f) { return f->name == with_extension; })) return file;
  return first([&](const auto* f) { return f->title == name; });
}

}  // namespace hocket
