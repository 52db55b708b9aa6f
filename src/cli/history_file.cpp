#include "cli/history_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json.h"
#include "base/log.h"
#include "cli/text_input.h"

namespace hocket {
namespace {

constexpr std::size_t kEntries = 1000;

std::string default_path() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/hocket/history";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return std::string(home) + "/.local/state/hocket/history";
  return "";
}

std::string line_of(const std::string& text) {
  return dump_json(Json(text)) + "\n";
}

bool write_whole(const std::string& path, const std::string& text, int flags) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
  if (file < 0) return false;
  const bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  return written;
}

}  // namespace

HistoryFile::HistoryFile() : path_(default_path()) {}

std::vector<std::string> HistoryFile::load() {
  std::vector<std::string> entries;
  std::error_code fault;
  if (path_.empty() || !std::filesystem::exists(path_, fault)) return entries;
  const auto text = read_text(path_);
  if (!text) {
    log_debug("{}", text.error().message);
    return entries;
  }
  std::size_t n_lines = 0;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line); ++n_lines) {
    const auto entry = parse_json(line);
    if (entry && entry->is_string()) entries.push_back(entry->get<std::string>());
  }
  if (entries.size() > kEntries) entries.erase(entries.begin(), entries.end() - kEntries);
  if (n_lines > 2 * kEntries) {
    std::string kept;
    for (const std::string& entry : entries) kept += line_of(entry);
    const std::string fresh = path_ + ".new";
    if (write_whole(fresh, kept, O_TRUNC)) std::filesystem::rename(fresh, path_, fault);
  }
  return entries;
}

void HistoryFile::add(const std::string& text) {
  if (path_.empty()) return;
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  std::error_code fault;
  std::filesystem::create_directories(folder.parent_path(), fault);
  ::mkdir(folder.c_str(), 0700);
  if (!write_whole(path_, line_of(text), O_APPEND)) {
    log_debug("cannot write {}: {}", path_, std::strerror(errno));
    path_.clear();
  }
}

}  // namespace hocket
