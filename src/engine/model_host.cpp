#include "engine/model_host.h"

#include <fmt/format.h>

#include <utility>

#include "engine/local_model_host.h"

namespace hocket {
namespace {

// A host of one service, or of none, that was there before.
class FixedHost final : public ModelHost {
 public:
  FixedHost(std::shared_ptr<ChatService> service, std::size_t most_bytes)
      : service_(std::move(service)), most_bytes_(most_bytes) {}

  State state() const override { return State::kReady; }
  float progress() const override { return 1.0f; }
  std::optional<Error> fault() const override { return std::nullopt; }
  std::vector<ModelStatus> models() override {
    std::vector<ModelStatus> list;
    if (!service_) return list;
    const ServiceInfo& info = service_->info();
    list.push_back({info.model_id, info.aliases, info.model_path, info.model.arch, ModelStatus::State::kLoaded, 1.0f,
                    std::nullopt, service_});
    return list;
  }
  Result<std::shared_ptr<ChatService>> use(std::string_view model, const std::function<bool()>&) override {
    if (service_ && (model.empty() || find_called(models(), model))) return service_;
    return no_such_model(model, ids_of(models()));
  }
  std::vector<std::shared_ptr<ChatService>> loaded() const override {
    if (!service_) return {};
    return {service_};
  }
  // One at a time has all the room.
  Result<std::shared_ptr<void>> reserve(const std::string& what, std::size_t n_bytes,
                                        const std::function<bool()>&) override {
    if (most_bytes_ > 0 && n_bytes > most_bytes_) return beyond_budget(what, n_bytes, most_bytes_);
    return std::shared_ptr<void>();
  }
  void drain(std::chrono::milliseconds limit) override {
    if (service_) service_->drain(limit);
  }

 private:
  const std::shared_ptr<ChatService> service_;
  const std::size_t most_bytes_;
};

}  // namespace

Result<std::unique_ptr<ModelHost>> ModelHost::open(HostOptions options) {
  TRY_ASSIGN(auto host, LocalModelHost::open(std::move(options)));
  return std::unique_ptr<ModelHost>(std::move(host));
}

std::unique_ptr<ModelHost> ModelHost::of(std::shared_ptr<ChatService> service) {
  return std::make_unique<FixedHost>(std::move(service), 0);
}

std::unique_ptr<ModelHost> ModelHost::none(std::size_t most_bytes) {
  return std::make_unique<FixedHost>(nullptr, most_bytes);
}

Error beyond_budget(std::string_view what, std::size_t n_bytes, std::size_t most_bytes) {
  return Error(ErrorCode::kOutOfMemory,
               fmt::format("{} needs about {} MiB, and all models together may take {} MiB (--memory-budget)", what,
                           n_bytes >> 20, most_bytes >> 20));
}

Error no_such_model(std::string_view model, const std::vector<std::string>& ids) {
  constexpr std::size_t kMostNamed = 16;
  std::string there = "no language model: it was started without -m and --models-dir";
  if (!ids.empty()) {
    const std::size_t n = std::min(ids.size(), kMostNamed);
    there = fmt::format("\"{}\"", fmt::join(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n), "\", \""));
    if (n < ids.size()) there += fmt::format(" and {} more (GET /v1/models)", ids.size() - n);
  }
  const std::string asked = model.empty() ? "model is missing" : fmt::format("there is no model \"{}\"", model);
  Error error(model.empty() && !ids.empty() ? ErrorCode::kInvalid : ErrorCode::kNotFound,
              fmt::format("{}; this server has {}", asked, there), "model");
  if (error.code == ErrorCode::kNotFound) error.reason = "model_not_found";
  return error;
}

}  // namespace hocket
