// engine/model_catalog.h: the language models that a folder offers.
//
// Every file whose architecture this program runs is one, by the name that model_name() gives it. Its general.name is
// another name for it, where no other model has that.
//
// Owns     names and paths; no file stays open.
// Threads  one at a time.
// Errors   scan(): kIo naming the folder.
// Cost     scan() reads the headers of files that are new or changed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/model_folder.h"

namespace hocket {

struct CatalogModel {
  std::string id;
  std::vector<std::string> aliases;
  std::string path;
  std::string architecture;
};

class ModelCatalog {
 public:
  // An empty catalog of a folder; "": it stays empty.
  explicit ModelCatalog(std::string folder) : folder_(std::move(folder)) {}

  Result<void> scan();
  // In order of their ids.
  const std::vector<CatalogModel>& models() const { return models_; }

 private:
  std::string folder_;
  std::optional<ModelFolder> files_;
  std::vector<CatalogModel> models_;
};

}  // namespace hocket
