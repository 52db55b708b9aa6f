#include "engine/model_host.h"

#include <fmt/format.h>

#include <utility>

#include "engine/local_model_host.h"

namespace hocket {
namespace {

// A host of one service, or of none, that was there before.
class FixedHost final : public ModelHost {
 public:
  explicit FixedHost(std::shared_ptr<ChatService> service) : service_(std::move(service)) {}

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
  void drain(std::chrono::milliseconds limit) override {
    if (service_) service_->drain(limit);
  }

 private:
  const std::shared_ptr<ChatService> service_;
};

}  // namespace

Result<std::unique_ptr<ModelHost>> ModelHost::open(HostOptions options) {
  TRY_ASSIGN(auto host, LocalModelHost::open(std::move(options)));
  return std::unique_ptr<ModelHost>(std::move(host));
}

std::unique_ptr<ModelHost> ModelHost::of(std::shared_ptr<ChatService> service) {
  return std::make_unique<FixedHost>(std::move(service));
}

std::unique_ptr<ModelHost> ModelHost::none() {
  return std::make_unique<FixedHost>(nullptr);
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
