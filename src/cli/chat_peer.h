// cli/chat_peer.h: what a console talks to: a model in this program, or one behind another server.
//
// Threads  one thread.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "engine/chat_service.h"

namespace hocket {

class ChatPeer {
 public:
  virtual ~ChatPeer() = default;
  virtual std::string model_id() const = 0;
  virtual std::size_t n_ctx() const = 0;  // 0: unknown
  virtual Result<std::unique_ptr<Reply>> chat(ChatRequest request) = 0;
};

class LocalPeer final : public ChatPeer {
 public:
  explicit LocalPeer(std::shared_ptr<ChatService> service) : service_(std::move(service)) {}
  std::string model_id() const override { return service_->info().model_id; }
  std::size_t n_ctx() const override { return service_->info().n_ctx; }
  Result<std::unique_ptr<Reply>> chat(ChatRequest request) override { return service_->chat(std::move(request)); }

 private:
  std::shared_ptr<ChatService> service_;
};

}  // namespace hocket
