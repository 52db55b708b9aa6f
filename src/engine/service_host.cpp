#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "engine/chat_service.h"

namespace hocket {
namespace {

Error still_loading() {
  Error error(ErrorCode::kBusy, "the model is still loading");
  error.reason = "loading";
  return error;
}

class ReadyHost final : public ServiceHost {
 public:
  explicit ReadyHost(std::shared_ptr<ChatService> service) : service_(std::move(service)) {}
  State state() const override { return State::kReady; }
  float progress() const override { return 1.0f; }
  Result<std::shared_ptr<ChatService>> service() const override { return service_; }
  Result<std::shared_ptr<ChatService>> wait() override { return service_; }

 private:
  std::shared_ptr<ChatService> service_;
};

class NoHost final : public ServiceHost {
 public:
  State state() const override { return State::kReady; }
  float progress() const override { return 1.0f; }
  Result<std::shared_ptr<ChatService>> service() const override {
    Error error(ErrorCode::kNotFound, "this server has no language model: it was started without -m", "model");
    error.reason = "model_not_found";
    return error;
  }
  Result<std::shared_ptr<ChatService>> wait() override { return service(); }
};

class LoadingHost final : public ServiceHost {
 public:
  explicit LoadingHost(ServiceOptions options) {
    options.load.progress = [this, inner = options.load.progress](float done) {
      progress_ = done;
      return (!inner || inner(done)) && !stop_;
    };
    thread_ = std::thread([this, options = std::move(options)] { load(options); });
  }
  ~LoadingHost() override {
    stop_ = true;
    thread_.join();
  }

  State state() const override {
    const std::lock_guard lock(mutex_);
    if (!result_) return State::kLoading;
    return result_->ok() ? State::kReady : State::kFailed;
  }
  float progress() const override { return progress_; }
  Result<std::shared_ptr<ChatService>> service() const override {
    const std::lock_guard lock(mutex_);
    if (!result_) return still_loading();
    return *result_;
  }
  Result<std::shared_ptr<ChatService>> wait() override {
    std::unique_lock lock(mutex_);
    loaded_.wait(lock, [&] { return result_.has_value(); });
    return *result_;
  }

 private:
  void load(const ServiceOptions& options) {
    Result<std::shared_ptr<ChatService>> result = guarded_load(options);
    const std::lock_guard lock(mutex_);
    if (result) progress_ = 1.0f;
    result_ = std::move(result);
    loaded_.notify_all();
  }
  static Result<std::shared_ptr<ChatService>> guarded_load(const ServiceOptions& options) {
    try {
      return ChatService::load(options);
    } catch (const std::bad_alloc&) {
      return Error(ErrorCode::kOutOfMemory, "not enough memory to load the model", options.model_path);
    } catch (const std::exception& e) {
      return Error(ErrorCode::kInternal, std::string("the model could not be loaded: ") + e.what(), options.model_path);
    }
  }

  std::atomic<float> progress_{0};
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::condition_variable loaded_;
  std::optional<Result<std::shared_ptr<ChatService>>> result_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<ServiceHost> ServiceHost::start(ServiceOptions options) {
  return std::make_unique<LoadingHost>(std::move(options));
}

std::unique_ptr<ServiceHost> ServiceHost::none() {
  return std::make_unique<NoHost>();
}

std::unique_ptr<ServiceHost> ServiceHost::of(std::shared_ptr<ChatService> service) {
  return std::make_unique<ReadyHost>(std::move(service));
}

}  // namespace hocket
