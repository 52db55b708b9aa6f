// engine/model_host.h: the language models of one server: loaded when they are asked for, several side by side under
// one budget of memory, given back when nobody uses them.
//
//   TRY_ASSIGN(const auto service, host.use("qwen3-4b", gone));   // loads it, where it is not there
//
// What use() and loaded() return is a lease: a model stays as long as somebody holds one, or it has requests. To make
// room for a model, those that were used least recently go; one that still works ends its requests first and gets no
// new ones meanwhile.
//
// Owns     the services, a thread that loads and unloads.
// Threads  any. A load takes no lock that requests to other models need.
// Errors   kNotFound with reason "model_not_found" for a name that is not there; kBusy with reason "loading" while a
//          model that belongs to the start is loaded; kOutOfMemory when a model is larger than the budget; the load's
//          own.
// Cost     models() reads the headers of files that are new or changed. Nothing runs while nothing is asked, but a look
//          at the clock each second where keep_alive is set.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/chat_service.h"

namespace hocket {

struct HostOptions {
  // Of every model; model_path and aliases name the one that is loaded at the start, and is meant where no model is
  // named. "": none is.
  ServiceOptions service;
  std::string folder;  // its *.gguf files are models too, named as their files are; "": none
  std::vector<std::pair<std::string, std::string>> aliases;  // name, and the id of the model of the folder
  std::size_t most_bytes = 0;                                // that all models are planned to take; 0: no limit
  std::size_t most_models = 0;                               // in memory at a time; 0: no limit
  std::optional<std::chrono::milliseconds> keep_alive;       // a model goes when it was idle that long; absent: never
  // Tests replace these.
  std::function<Result<std::shared_ptr<ChatService>>(const ServiceOptions&)> load = ChatService::load;
  std::function<Result<ServicePlan>(const ServiceOptions&)> plan = plan_service;
};

struct ModelStatus {
  enum class State { kUnloaded, kLoading, kLoaded, kFailed };
  std::string id;
  std::vector<std::string> aliases;
  std::string path;
  std::string architecture;
  State state = State::kUnloaded;
  float progress = 0;                    // of a load
  std::optional<Error> fault;            // of the last load
  std::shared_ptr<ChatService> service;  // a lease of a loaded one
};

class ModelHost {
 public:
  virtual ~ModelHost() = default;  // waits for a load in progress, after asking it to stop
  // kInvalid for aliases of nothing, kIo for a folder that cannot be read. The first model loads in the background.
  static Result<std::unique_ptr<ModelHost>> open(HostOptions options);
  // A host around a service that exists (tests, in-process use).
  static std::unique_ptr<ModelHost> of(std::shared_ptr<ChatService> service);
  // Of a server without language models: use() is kNotFound. most_bytes: as of HostOptions, for reserve().
  static std::unique_ptr<ModelHost> none(std::size_t most_bytes = 0);

  // Of the start: kLoading until the first model is there, kFailed when that could not be loaded.
  enum class State { kLoading, kReady, kFailed };
  virtual State state() const = 0;
  virtual float progress() const = 0;
  virtual std::optional<Error> fault() const = 0;  // of kFailed

  // In a stable order, the first model first.
  virtual std::vector<ModelStatus> models() = 0;
  // By id or alias; "": the first model, or the only one. Waits until it is loaded, looking at `gone` now and then:
  // kCancelled when that says true.
  virtual Result<std::shared_ptr<ChatService>> use(std::string_view model, const std::function<bool()>& gone) = 0;
  // Those in memory.
  virtual std::vector<std::shared_ptr<ChatService>> loaded() const = 0;
  // Room under the budget for `what`, which is no model (music): models make room as for another one, and it counts
  // until the lease ends. Waits for it, looking at `gone` now and then: kCancelled when that says true. kOutOfMemory
  // when it is larger than the budget; kBusy with reason "draining" at the end.
  virtual Result<std::shared_ptr<void>> reserve(const std::string& what, std::size_t n_bytes,
                                                const std::function<bool()>& gone) = 0;
  // Loads nothing more, and drains all that is loaded (ChatService::drain) at the same time.
  virtual void drain(std::chrono::milliseconds limit) = 0;
};

// The one of `models` that is called so: an id goes before every alias. nullptr: none is.
template <class Models>
auto* find_called(Models&& models, std::string_view name) {
  using Model = std::remove_reference_t<decltype(*std::begin(models))>;
  for (Model& model : models)
    if (model.id == name) return &model;
  for (Model& model : models)
    if (std::find(model.aliases.begin(), model.aliases.end(), name) != model.aliases.end()) return &model;
  return static_cast<Model*>(nullptr);
}

template <class Models>
std::vector<std::string> ids_of(Models&& models) {
  std::vector<std::string> ids;
  for (const auto& model : models) ids.push_back(model.id);
  return ids;
}

// The error of reserve() for what is larger than the budget.
Error beyond_budget(std::string_view what, std::size_t n_bytes, std::size_t most_bytes);
// The error of use() for a name that is not among `ids`.
Error no_such_model(std::string_view model, const std::vector<std::string>& ids);

}  // namespace hocket
