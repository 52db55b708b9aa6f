#include "engine/music_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace hocket {
namespace {

namespace fs = std::filesystem;

// Single files first, then folders, each by name.
Result<std::vector<std::string>> find_adapters(const std::string& folder) {
  std::vector<std::string> files, folders;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const std::string name = it->path().filename().string();
    if (it->path().extension() == ".safetensors" && it->is_regular_file(ignored)) files.push_back(name);
    if (it->is_directory(ignored) && fs::is_regular_file(it->path() / "adapter_model.safetensors", ignored))
      folders.push_back(name);
  }
  if (error) return Error(ErrorCode::kIo, fmt::format("cannot read folder {}: {}", folder, error.message()), folder);
  std::sort(files.begin(), files.end());
  std::sort(folders.begin(), folders.end());
  files.insert(files.end(), folders.begin(), folders.end());
  return files;
}

constexpr std::pair<MusicFileKind, const char*> kKinds[] = {{MusicFileKind::kLanguageModel, "lm"},
                                                            {MusicFileKind::kTextEncoder, "text-encoder"},
                                                            {MusicFileKind::kDit, "dit"},
                                                            {MusicFileKind::kVae, "vae"}};

bool needs_kind(const MusicNeeds& needs, MusicFileKind kind) {
  switch (kind) {
    case MusicFileKind::kLanguageModel:
      return needs.lm;
    case MusicFileKind::kTextEncoder:
      return needs.text_encoder;
    case MusicFileKind::kDit:
      return needs.dit;
    case MusicFileKind::kVae:
      return needs.vae;
  }
  return false;
}

Error unknown(const std::string& name, const char* field) {
  Error error(ErrorCode::kNotFound, fmt::format("Unknown model '{}'", name.substr(0, 256)), field);
  error.reason = "model_not_found";
  return error;
}

}  // namespace

Result<std::unique_ptr<MusicLibrary>> MusicLibrary::open(MusicLibraryOptions options) {
  std::unique_ptr<MusicLibrary> library(new MusicLibrary(std::move(options)));
  TRY(library->rescan());
  for (const auto& [kind, name] : kKinds) {
    const std::string wanted = library->default_name(kind), flag = fmt::format("--music-{}", name);
    if (!wanted.empty()) TRY(library->file(kind, wanted, flag.c_str()));
  }
  return library;
}

std::string MusicLibrary::default_name(MusicFileKind kind) const {
  const auto it = options_.defaults.find(kind);
  return it == options_.defaults.end() ? std::string() : it->second;
}

Result<void> MusicLibrary::rescan() {
  TRY_ASSIGN(ModelFolder models, ModelFolder::scan(options_.folder));
  std::vector<std::string> adapters;
  if (!options_.adapters.empty()) {
    TRY_ASSIGN(adapters, find_adapters(options_.adapters));
  }
  const std::lock_guard lock(mutex_);
  models_ = std::move(models);
  adapters_ = std::move(adapters);
  dits_.clear();
  last_.clear();
  return {};
}

MusicInventory MusicLibrary::inventory() const {
  const std::lock_guard lock(mutex_);
  const auto names = [&](MusicFileKind kind) {
    std::vector<std::string> list;
    const ModelFileEntry* first = models_->find(music_architecture(kind), default_name(kind));
    if (first) list.push_back(first->name);
    for (const ModelFileEntry* file : models_->of(music_architecture(kind)))
      if (file != first) list.push_back(file->name);
    return list;
  };
  return {names(MusicFileKind::kLanguageModel), names(MusicFileKind::kTextEncoder), names(MusicFileKind::kDit),
          names(MusicFileKind::kVae), adapters_};
}

std::vector<std::string> MusicLibrary::missing(const MusicNeeds& needs) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [kind, name] : kKinds)
    if (needs_kind(needs, kind) && !models_->find(music_architecture(kind), {})) names.emplace_back(name);
  return names;
}

Result<std::string> MusicLibrary::file(MusicFileKind kind, const std::string& name, const char* field) const {
  const std::lock_guard lock(mutex_);
  const std::string wanted = name.empty() ? default_name(kind) : name;
  if (const auto last = last_.find(kind); wanted.empty() && last != last_.end()) return last->second;
  const ModelFileEntry* file = models_->find(music_architecture(kind), wanted);
  if (!file) return unknown(wanted, field);
  return file->path;
}

Result<std::string> MusicLibrary::adapter(const std::string& name) const {
  if (name.empty()) return std::string();
  const std::lock_guard lock(mutex_);
  if (std::find(adapters_.begin(), adapters_.end(), name) == adapters_.end()) return unknown(name, "adapter");
  return (fs::path(options_.adapters) / name).string();
}

void MusicLibrary::used(MusicFileKind kind, const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (options_.sticky) last_[kind] = path;
}

Result<std::shared_ptr<const DitFile>> MusicLibrary::dit(const std::string& path) {
  const std::lock_guard lock(mutex_);
  auto& known = dits_[path];
  if (!known) {
    auto opened = DitFile::open(path);
    if (!opened) {
      dits_.erase(path);
      return opened.error();
    }
    known = *std::move(opened);
  }
  return known;
}

}  // namespace hocket
