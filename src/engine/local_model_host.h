// engine/local_model_host.h: the ModelHost that ModelHost::open() makes.
//
// Who wants a model puts it on a list; the thread of the host takes them from there in the order of asking, makes room,
// loads, and tells all that wait.
//
// Owns, Threads, Errors, Cost  see model_host.h.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "engine/model_catalog.h"
#include "engine/model_host.h"

namespace hocket {

class LocalModelHost final : public ModelHost {
 public:
  static Result<std::unique_ptr<LocalModelHost>> open(HostOptions options);
  ~LocalModelHost() override;

  State state() const override;
  float progress() const override;
  std::optional<Error> fault() const override;
  std::vector<ModelStatus> models() override;
  Result<std::shared_ptr<ChatService>> use(std::string_view model, const std::function<bool()>& gone) override;
  std::vector<std::shared_ptr<ChatService>> loaded() const override;
  Result<std::shared_ptr<void>> reserve(const std::string& what, std::size_t n_bytes,
                                        const std::function<bool()>& gone) override;
  void drain(std::chrono::milliseconds limit) override;

 private:
  // kLeaving: it gets no new requests and goes when it has none.
  enum class Phase { kUnloaded, kLoading, kLoaded, kLeaving };

  struct Model {
    std::string id;
    std::vector<std::string> aliases;
    std::string path, architecture;
    bool listed = true;  // false: its file has gone from the folder
    Phase phase = Phase::kUnloaded;
    std::size_t n_waiting = 0;   // for it to be loaded
    uint64_t n_attempts = 0;     // loads that have ended
    std::optional<Error> fault;  // of the last one
    std::atomic<float> progress{0};
    std::shared_ptr<ChatService> service;
    std::size_t n_bytes = 0;  // that it is planned to take
    Clock::time_point used;   // when it was last seen to work
    // Shared with the leases, which may outlive the host.
    std::shared_ptr<std::atomic<int>> n_leases = std::make_shared<std::atomic<int>>(0);
  };
  // Something else that wants room.
  struct Guest {
    std::size_t n_bytes = 0;
    bool has_room = false;
    bool gone = false;  // nobody waits for it any more
  };
  using Want = std::variant<Model*, std::shared_ptr<Guest>>;
  using Lock = std::unique_lock<std::mutex>;

  explicit LocalModelHost(HostOptions options);

  // What is there. The lock is held.
  Result<void> scan();
  Model* find(std::string_view name);
  Result<Model*> choose(std::string_view name);
  static std::shared_ptr<ChatService> lease(const Model& model);
  static bool idle(const Model& model);

  // The thread of the host. The lock is held, but for the time of the work itself.
  void run();
  bool is_wanted(const Model& model) const;
  // The bytes of the model, where they fit the budget at all.
  Result<void> plan(Lock& lock, Model& model);
  // Until they fit, or `wanted` says false.
  Result<void> make_room(Lock& lock, std::size_t n_bytes, std::size_t n_models, const std::function<bool()>& wanted);
  bool has_room(std::size_t n_bytes, std::size_t n_models) const;
  Model* least_used(Phase phase, bool only_idle);
  void load(Lock& lock, Model& model);
  void unload(Lock& lock, Model& model);
  void end_attempt(Model& model, Result<std::shared_ptr<ChatService>> result);
  Clock::time_point unload_idle(Lock& lock);  // the time of the next look

  ServiceOptions options_of(const Model& model) const;

  const HostOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  ModelCatalog catalog_;
  std::list<Model> models_;  // never shrinks: threads wait for what is in it
  std::list<Want> wanted_;   // in the order of asking
  const std::shared_ptr<std::atomic<std::size_t>> reserved_ = std::make_shared<std::atomic<std::size_t>>(0);  // bytes
  Model* first_ = nullptr;  // the one of the start; nullptr: there is none
  std::optional<Error> start_fault_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace hocket
