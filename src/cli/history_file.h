// cli/history_file.h: what was typed in earlier conversations: a JSON string a line in the user's state folder.
//
// Threads  the main thread.
// Errors   a history that cannot be read or written is none; the log says why at debug level.
#pragma once

#include <string>
#include <vector>

namespace hocket {

class HistoryFile {
 public:
  // $XDG_STATE_HOME/hocket/history, or ~/.local/state/hocket/history; no file where neither is set.
  HistoryFile();
  explicit HistoryFile(std::string path) : path_(std::move(path)) {}

  // The newest entries, oldest first. A file that has grown far beyond them is cut.
  std::vector<std::string> load();
  // Appends; a new file has mode 0600.
  void add(const std::string& text);

 private:
  std::string path_;
};

}  // namespace hocket
