#include "cli/serve_console.h"

#include <string>
#include <utility>

namespace hocket {
namespace {

// A reply that keeps its model.
class LeasedReply final : public Reply {
 public:
  LeasedReply(std::shared_ptr<ChatService> lease, std::unique_ptr<Reply> reply)
      : lease_(std::move(lease)), reply_(std::move(reply)) {}
  const std::string& request_id() const override { return reply_->request_id(); }
  int64_t created() const override { return reply_->created(); }
  void cancel() override { reply_->cancel(); }
  Result<std::optional<ReplyEvent>> next(std::chrono::milliseconds wait) override { return reply_->next(wait); }

 private:
  const std::shared_ptr<ChatService> lease_;
  const std::unique_ptr<Reply> reply_;
};

class HostPeer final : public ChatPeer {
 public:
  explicit HostPeer(ModelHost& host) : host_(host) {}
  std::string model_id() const override {
    const std::vector<ModelStatus> models = host_.models();
    return models.empty() ? std::string() : models.front().id;
  }
  std::size_t n_ctx() const override {
    const std::vector<ModelStatus> models = host_.models();
    return models.empty() || !models.front().service ? 0 : models.front().service->info().n_ctx;
  }
  Result<std::unique_ptr<Reply>> chat(ChatRequest request) override {
    TRY_ASSIGN(auto service, host_.use(model_id(), [] { return false; }));
    TRY_ASSIGN(auto reply, service->chat(std::move(request)));
    return std::unique_ptr<Reply>(std::make_unique<LeasedReply>(std::move(service), std::move(reply)));
  }

 private:
  ModelHost& host_;
};

}  // namespace

ServeConsole::ServeConsole(ModelHost& host, ConsoleOptions options)
    : peer_(std::make_unique<HostPeer>(host)), console_(*peer_, std::move(options)) {
  thread_ = std::thread([this] {
    console_.converse();
    ended_ = true;
  });
}

ServeConsole::~ServeConsole() {
  console_.stop();
  thread_.join();
}

}  // namespace hocket
