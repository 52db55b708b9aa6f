#include "engine/model_catalog.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"
#include "lm/language_model.h"

namespace hocket {

Result<void> ModelCatalog::scan() {
  if (folder_.empty()) return {};
  TRY_ASSIGN(ModelFolder found, ModelFolder::scan(folder_, files_ ? &*files_ : nullptr));
  const std::vector<std::string> runs = supported_architectures();
  std::map<std::string, int> n_named;  // models that a name could mean
  std::vector<std::pair<CatalogModel, std::string>> titled;
  for (const ModelFileEntry& file : found.files()) {
    if (std::find(runs.begin(), runs.end(), file.architecture) == runs.end()) continue;
    const std::string id = model_name(file.path);
    ++n_named[id];
    if (!file.title.empty() && file.title != id) ++n_named[file.title];
    titled.push_back({{id, {}, file.path, file.architecture}, file.title});
  }
  models_.clear();
  for (auto& [model, title] : titled) {
    const auto same = std::find_if(models_.begin(), models_.end(),
                                   [&, id = model.id](const CatalogModel& other) { return other.id == id; });
    if (same != models_.end()) {  // whole and in parts
      log_warn("{} is left out: {} is of the same name", model.path, same->path);
      continue;
    }
    if (const auto named = n_named.find(title); named != n_named.end() && named->second == 1 && title != model.id)
      model.aliases.push_back(title);
    models_.push_back(std::move(model));
  }
  files_ = std::move(found);
  return {};
}

}  // namespace hocket
