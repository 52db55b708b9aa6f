// store/model_folder.h: the model files of one folder, by what they say they are.
//
// A file's architecture (`general.architecture`) is its role: the files of one architecture stand for each other, and
// the first by file name is the one that is meant when nobody names one. Of a model that is split into several files
// the first stands for all.
//
// Owns     names and paths; no file stays open.
// Threads  const after scan().
// Errors   scan(): kIo naming the folder. Files that cannot be read are left out with a warning.
// Cost     scan() reads the headers of the folder's *.gguf files; with an earlier result, of those that are new or
//          changed. It does not look into folders below.
// Source   ace-step.md §13.1.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hocket {

// "org/name-00001-of-00003.gguf" is the model "name".
std::string model_name(std::string_view path);

struct ModelFileEntry {
  std::string name;  // the file's name
  std::string path;
  uintmax_t n_bytes = 0;
  std::filesystem::file_time_type written;
  std::string architecture;
  std::string title;  // general.name; may be empty
};

class ModelFolder {
 public:
  // `earlier`: what an earlier scan of the same folder found; nullptr: none.
  static Result<ModelFolder> scan(const std::filesystem::path& folder, const ModelFolder* earlier = nullptr);

  const std::filesystem::path& path() const { return folder_; }
  // In order of their names.
  const std::vector<ModelFileEntry>& files() const { return files_; }
  // In order of their names.
  std::vector<const ModelFileEntry*> of(std::string_view architecture) const;
  // By its file name, with or without ".gguf", or by its title; "" is the first. nullptr: there is none.
  const ModelFileEntry* find(std::string_view architecture, std::string_view name) const;

 private:
  std::filesystem::path folder_;
  std::vector<ModelFileEntry> files_;
  std::vector<ModelFileEntry> unreadable_;  // without architecture and title
};

}  // namespace hocket
