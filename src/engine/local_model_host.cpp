#include "engine/local_model_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ranges>
#include <utility>

#include "base/log.h"
#include "engine/process_usage.h"

namespace hocket {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookInterval{1000};   // for models that were idle for too long
constexpr milliseconds kLeaveInterval{20};    // at a model that is to leave
constexpr milliseconds kClientInterval{100};  // at a client that waits
constexpr milliseconds kUnloadLimit{10'000};  // for sessions that are being saved

Error busy(const char* message, const char* reason) {
  Error error(ErrorCode::kBusy, message);
  error.reason = reason;
  return error;
}

std::size_t all_bytes(const ServicePlan& plan) {
  return plan.memory.total_bytes() + plan.draft_memory.total_bytes();
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

}  // namespace

Result<std::unique_ptr<LocalModelHost>> LocalModelHost::open(HostOptions options) {
  std::unique_ptr<LocalModelHost> host(new LocalModelHost(std::move(options)));
  {
    const std::lock_guard lock(host->mutex_);
    TRY(host->scan());
    for (const auto& [alias, id] : host->options_.aliases)
      if (!host->find(id))
        return Error(ErrorCode::kInvalid, fmt::format("the alias \"{}\" means \"{}\", which is no model", alias, id),
                     "alias");
    if (host->first_) host->wanted_.push_back(host->first_);
  }
  host->thread_ = std::thread([raw = host.get()] { raw->run(); });
  return host;
}

LocalModelHost::LocalModelHost(HostOptions options) : options_(std::move(options)), catalog_(options_.folder) {
  const ServiceOptions& service = options_.service;
  if (service.model_path.empty()) return;
  first_ = &models_.emplace_back();
  first_->id = service.aliases.empty() ? model_name(service.model_path) : service.aliases.front();
  first_->aliases = service.aliases;
  first_->path = service.model_path;
}

LocalModelHost::~LocalModelHost() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

// ---- what is there

Result<void> LocalModelHost::scan() {
  TRY(catalog_.scan());
  for (Model& model : models_) model.listed = &model == first_;
  for (const CatalogModel& found : catalog_.models()) {
    if (first_ && (found.id == first_->id || same_file(found.path, first_->path))) continue;
    auto it = std::find_if(models_.begin(), models_.end(), [&](const Model& model) { return model.id == found.id; });
    if (it == models_.end()) it = models_.emplace(models_.end());
    it->id = found.id;
    it->aliases = found.aliases;
    it->path = found.path;
    it->architecture = found.architecture;
    it->listed = true;
    for (const auto& [alias, id] : options_.aliases)
      if (id == found.id) it->aliases.push_back(alias);
  }
  return {};
}

LocalModelHost::Model* LocalModelHost::find(std::string_view name) {
  return find_called(models_ | std::views::filter(&Model::listed), name);
}

Result<LocalModelHost::Model*> LocalModelHost::choose(std::string_view name) {
  if (name.empty() && first_) return first_;
  if (Model* model = find(name); model && !name.empty()) return model;
  TRY(scan());  // it may be new
  const std::vector<std::string> ids = ids_of(models_ | std::views::filter(&Model::listed));
  Model* model = name.empty() && ids.size() == 1 ? find(ids.front()) : find(name);
  if (!model) return no_such_model(name, ids);
  return model;
}

ServiceOptions LocalModelHost::options_of(const Model& model) const {
  ServiceOptions options = options_.service;
  if (&model != first_) {
    options.model_path = model.path;
    options.aliases = {model.id};
    options.aliases.insert(options.aliases.end(), model.aliases.begin(), model.aliases.end());
  }
  // Each model has its own index and its own budget.
  if (!options_.folder.empty() && !options.sessions.folder.empty())
    options.sessions.folder = (std::filesystem::path(options.sessions.folder) / model.id).string();
  return options;
}

std::shared_ptr<ChatService> LocalModelHost::lease(const Model& model) {
  model.n_leases->fetch_add(1);
  ChatService* const service = model.service.get();
  return {service, [kept = model.service, n = model.n_leases](ChatService*) mutable {
            kept.reset();
            n->fetch_sub(1);
          }};
}

bool LocalModelHost::idle(const Model& model) {
  // In this order: a request shows in the status before its lease ends.
  return model.n_leases->load() == 0 && model.service->status().empty();
}

ModelHost::State LocalModelHost::state() const {
  const std::lock_guard lock(mutex_);
  if (start_fault_) return State::kFailed;
  return first_ && first_->n_attempts == 0 ? State::kLoading : State::kReady;
}

float LocalModelHost::progress() const {
  return state() == State::kLoading ? first_->progress.load() : 1.0f;
}

std::optional<Error> LocalModelHost::fault() const {
  const std::lock_guard lock(mutex_);
  return start_fault_;
}

std::vector<ModelStatus> LocalModelHost::models() {
  const std::lock_guard lock(mutex_);
  if (const auto scanned = scan(); !scanned) log_warn("{}", scanned.error().message);
  std::vector<ModelStatus> list;
  for (const Model& model : models_) {
    if (!model.listed && model.phase == Phase::kUnloaded) continue;
    ModelStatus& status = list.emplace_back();
    status.id = model.id;
    status.aliases = model.aliases;
    status.path = model.path;
    status.architecture = model.architecture;
    status.fault = model.fault;
    if (model.service) status.service = lease(model);
    if (model.phase == Phase::kLoaded) status.state = ModelStatus::State::kLoaded;
    if (model.phase == Phase::kLoading) status.state = ModelStatus::State::kLoading;
    if (model.phase == Phase::kUnloaded && model.fault) status.state = ModelStatus::State::kFailed;
    status.progress = model.phase == Phase::kLoading ? model.progress.load() : 0;
  }
  return list;
}

std::vector<std::shared_ptr<ChatService>> LocalModelHost::loaded() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ChatService>> list;
  for (const Model& model : models_)
    if (model.service) list.push_back(lease(model));
  return list;
}

// ---- use

Result<std::shared_ptr<ChatService>> LocalModelHost::use(std::string_view name, const std::function<bool()>& gone) {
  Lock lock(mutex_);
  TRY_ASSIGN(Model* const chosen, choose(name));
  Model& model = *chosen;
  if (&model == first_ && model.n_attempts == 0) return busy("the model is still loading", "loading");
  if (&model == first_ && start_fault_) return *start_fault_;
  const uint64_t n_attempts = model.n_attempts;
  const double limit_ms = options_.service.queue_timeout_ms;
  const auto began = Clock::now();
  ++model.n_waiting;
  const auto wait = [&]() -> Result<std::shared_ptr<ChatService>> {
    while (model.phase != Phase::kLoaded) {
      if (stop_) return busy("the server is shutting down", "draining");
      if (model.n_attempts != n_attempts && model.fault) return *model.fault;
      if (limit_ms > 0 && ms_since(began) > limit_ms) {
        Error error(ErrorCode::kTimeout, fmt::format("the model \"{}\" could not be loaded in time", model.id));
        error.reason = "queue_timeout";
        return error;
      }
      if (std::find(wanted_.begin(), wanted_.end(), Want(&model)) == wanted_.end() && model.phase != Phase::kLoading)
        wanted_.push_back(&model);
      changed_.notify_all();
      changed_.wait_for(lock, kClientInterval);
      lock.unlock();
      const bool left = gone && gone();
      lock.lock();
      if (left) return Error(ErrorCode::kCancelled, "the client closed the connection");
    }
    model.used = Clock::now();
    return lease(model);
  };
  auto service = wait();
  --model.n_waiting;
  return service;
}

Result<std::shared_ptr<void>> LocalModelHost::reserve(const std::string& what, std::size_t n_bytes,
                                                      const std::function<bool()>& gone) {
  if (options_.most_bytes == 0) return std::shared_ptr<void>();
  if (n_bytes > options_.most_bytes) return beyond_budget(what, n_bytes, options_.most_bytes);
  const auto guest = std::make_shared<Guest>();
  guest->n_bytes = n_bytes;
  Lock lock(mutex_);
  wanted_.push_back(guest);
  changed_.notify_all();
  while (!guest->has_room) {
    guest->gone = stop_ || (gone && gone());
    if (guest->gone) {
      if (stop_) return busy("the server is shutting down", "draining");
      return Error(ErrorCode::kCancelled, "cancelled");
    }
    changed_.wait_for(lock, kClientInterval);
  }
  return std::shared_ptr<void>(nullptr, [reserved = reserved_, n_bytes](void*) { reserved->fetch_sub(n_bytes); });
}

void LocalModelHost::drain(milliseconds limit) {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  std::vector<std::thread> drains;
  for (auto& service : loaded()) drains.emplace_back([service, limit] { service->drain(limit); });
  for (std::thread& drain : drains) drain.join();
}

// ---- the thread

void LocalModelHost::run() {
  Lock lock(mutex_);
  while (!stop_) {
    if (wanted_.empty()) {
      const Clock::time_point next = unload_idle(lock);
      const auto woken = [&] { return stop_ || !wanted_.empty(); };
      if (next == Clock::time_point::max())
        changed_.wait(lock, woken);
      else
        changed_.wait_until(lock, next, woken);
      continue;
    }
    const Want want = wanted_.front();
    wanted_.pop_front();
    if (const auto* guest = std::get_if<std::shared_ptr<Guest>>(&want)) {
      const auto room = make_room(lock, (*guest)->n_bytes, 0, [&] { return !(*guest)->gone; });
      if (!room || (*guest)->gone) continue;
      reserved_->fetch_add((*guest)->n_bytes);
      (*guest)->has_room = true;
      changed_.notify_all();
      continue;
    }
    Model& model = *std::get<Model*>(want);
    const auto wanted = [&] { return is_wanted(model); };
    if (!wanted()) continue;
    auto room = plan(lock, model);
    if (room) room = make_room(lock, model.n_bytes, 1, wanted);
    if (!room)
      end_attempt(model, std::move(room).error());
    else if (wanted())
      load(lock, model);
  }
}

bool LocalModelHost::is_wanted(const Model& model) const {
  if (model.phase == Phase::kLoaded) return false;
  return model.n_waiting > 0 || (&model == first_ && model.n_attempts == 0);
}

// The one that was used longest ago; nullptr: there is none.
LocalModelHost::Model* LocalModelHost::least_used(Phase phase, bool only_idle) {
  Model* least = nullptr;
  for (Model& model : models_) {
    if (model.phase != phase || (only_idle && !idle(model))) continue;
    if (phase == Phase::kLoaded && model.n_waiting > 0) continue;  // it was loaded for them, and they will soon have it
    if (!least || model.used < least->used) least = &model;
  }
  return least;
}

bool LocalModelHost::has_room(std::size_t n_bytes, std::size_t n_models) const {
  n_bytes += *reserved_;
  for (const Model& model : models_) {
    if (model.phase == Phase::kUnloaded) continue;
    n_bytes += model.n_bytes;
    ++n_models;
  }
  return (options_.most_bytes == 0 || n_bytes <= options_.most_bytes) &&
         (options_.most_models == 0 || n_models <= options_.most_models);
}

Result<void> LocalModelHost::plan(Lock& lock, Model& model) {
  const ServiceOptions options = options_of(model);
  lock.unlock();
  const auto plan = options_.plan(options);
  lock.lock();
  if (!plan) return plan.error();
  const std::size_t n_bytes = all_bytes(*plan);
  if (options_.most_bytes > 0 && n_bytes > options_.most_bytes) {
    Error error = beyond_budget(fmt::format("the model \"{}\"", model.id), n_bytes, options_.most_bytes);
    error.param = "model";
    return error;
  }
  model.n_bytes = n_bytes;
  return {};
}

Result<void> LocalModelHost::make_room(Lock& lock, std::size_t n_bytes, std::size_t n_models,
                                       const std::function<bool()>& wanted) {
  while (!has_room(n_bytes, n_models) && wanted() && !stop_) {
    Model* leaving = least_used(Phase::kLoaded, true);
    if (!leaving) leaving = least_used(Phase::kLeaving, false);
    if (!leaving) leaving = least_used(Phase::kLoaded, false);
    if (leaving) leaving->phase = Phase::kLeaving;
    if (leaving && idle(*leaving))
      unload(lock, *leaving);
    else
      changed_.wait_for(lock, kLeaveInterval);
  }
  // Who was to leave may stay, when there is room now or nobody waits any more.
  for (Model& other : models_)
    if (other.phase == Phase::kLeaving) other.phase = Phase::kLoaded;
  changed_.notify_all();
  if (stop_) return busy("the server is shutting down", "draining");
  return {};
}

void LocalModelHost::load(Lock& lock, Model& model) {
  model.phase = Phase::kLoading;
  model.progress = 0;
  ServiceOptions options = options_of(model);
  options.load.progress = [this, &model, inner = options.load.progress](float done) {
    model.progress = done;
    return (!inner || inner(done)) && !stop_;
  };
  lock.unlock();
  const auto began = Clock::now();
  auto result = [&]() -> Result<std::shared_ptr<ChatService>> {
    try {
      return options_.load(options);
    } catch (const std::bad_alloc&) {
      return Error(ErrorCode::kOutOfMemory, "not enough memory to load the model", options.model_path);
    } catch (const std::exception& e) {
      return Error(ErrorCode::kInternal, std::string("the model could not be loaded: ") + e.what(), options.model_path);
    }
  }();
  if (result)
    log_info("model \"{}\" loaded in {:.1f} s", model.id, ms_since(began) / 1000);
  else
    log_error("model \"{}\" could not be loaded: {}", model.id, result.error().message);
  lock.lock();
  end_attempt(model, std::move(result));
}

void LocalModelHost::end_attempt(Model& model, Result<std::shared_ptr<ChatService>> result) {
  const bool start = &model == first_ && model.n_attempts == 0;
  ++model.n_attempts;
  model.fault.reset();
  if (result) {
    model.service = std::move(*result);
    model.phase = Phase::kLoaded;
    model.used = Clock::now();
  } else {
    if (!model.service) model.phase = Phase::kUnloaded;
    model.fault = result.error();
    if (start) start_fault_ = model.fault;
  }
  changed_.notify_all();
}

void LocalModelHost::unload(Lock& lock, Model& model) {
  model.phase = Phase::kLeaving;
  std::shared_ptr<ChatService> service = std::move(model.service);
  model.service.reset();
  lock.unlock();
  service->drain(kUnloadLimit);
  service.reset();
  give_back_memory();
  log_info("model \"{}\" unloaded", model.id);
  lock.lock();
  model.phase = Phase::kUnloaded;
  model.n_bytes = 0;
  changed_.notify_all();
}

Clock::time_point LocalModelHost::unload_idle(Lock& lock) {
  if (!options_.keep_alive) return Clock::time_point::max();
  const auto now = Clock::now();
  Clock::time_point next = Clock::time_point::max();
  for (Model& model : models_) {
    if (model.phase != Phase::kLoaded) continue;
    if (model.n_waiting > 0 || !idle(model)) model.used = now;
    if (now - model.used >= *options_.keep_alive)
      unload(lock, model);
    else
      next = std::min(next, std::max<Clock::time_point>(model.used + *options_.keep_alive, now + kLookInterval));
  }
  return next;
}

}  // namespace hocket
