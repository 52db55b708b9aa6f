#include "store/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/log.h"
#include "weights/gguf.h"

namespace hocket {
namespace {

constexpr std::string_view kExtension = ".gguf";
// "-00002-of-00005": five digits each.
constexpr std::size_t kNumberDigits = 5;
constexpr std::string_view kOf = "-of-";

// The number of the part that a file of this stem is; 0: it is whole.
int part_number(std::string_view stem) {
  const std::size_t n = 1 + kNumberDigits + kOf.size() + kNumberDigits;
  if (stem.size() <= n) return 0;
  const std::string_view end = stem.substr(stem.size() - n);
  const std::string_view number = end.substr(1, kNumberDigits), count = end.substr(n - kNumberDigits);
  const auto digits = [](std::string_view text) {
    return text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (end[0] != '-' || end.substr(1 + kNumberDigits, kOf.size()) != kOf || !digits(number) || !digits(count)) return 0;
  return std::stoi(std::string(number));
}

Result<ModelFileEntry> read_entry(const std::filesystem::path& path) {
  ModelFileEntry entry;
  entry.name = path.filename().string();
  entry.path = path.string();
  TRY_ASSIGN(const auto file, GgufFile::open(entry.path));
  TRY_ASSIGN(entry.architecture, file->metadata().string("general.architecture"));
  if (const auto title = file->metadata().string("general.name")) entry.title = *title;
  return entry;
}

template <class Same>
bool take_known(const std::vector<ModelFileEntry>& from, const Same& same, std::vector<ModelFileEntry>& to) {
  const auto it = std::find_if(from.begin(), from.end(), same);
  if (it == from.end()) return false;
  to.push_back(*it);
  return true;
}

}  // namespace

std::string model_name(std::string_view path) {
  std::string_view name = path.substr(path.find_last_of('/') + 1);
  if (name.size() > kExtension.size() && name.ends_with(kExtension)) name.remove_suffix(kExtension.size());
  if (part_number(name) > 0) name.remove_suffix(1 + kNumberDigits + kOf.size() + kNumberDigits);
  return std::string(name);
}

Result<ModelFolder> ModelFolder::scan(const std::filesystem::path& folder, const ModelFolder* earlier) {
  ModelFolder found;
  found.folder_ = folder;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code no_file;
    const std::filesystem::path& path = it->path();
    if (path.extension() != kExtension || !it->is_regular_file(no_file)) continue;
    if (part_number(path.stem().string()) > 1) continue;
    const uintmax_t n_bytes = it->file_size(no_file);
    const auto written = it->last_write_time(no_file);
    if (no_file) continue;  // it has just gone
    const auto same = [&](const ModelFileEntry& file) {
      return file.path == path && file.n_bytes == n_bytes && file.written == written;
    };
    if (earlier && take_known(earlier->files_, same, found.files_)) continue;
    if (earlier && take_known(earlier->unreadable_, same, found.unreadable_)) continue;
    auto entry = read_entry(path);
    if (!entry) log_warn("{} is left out: {}", path.string(), entry.error().message);
    std::vector<ModelFileEntry>& list = entry ? found.files_ : found.unreadable_;
    list.push_back(entry ? *std::move(entry) : ModelFileEntry{"", path.string(), 0, {}, "", ""});
    list.back().n_bytes = n_bytes;
    list.back().written = written;
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
