// cli/remote_chat.h: the chat API of a running server, as a peer of the console.
//
// Any server of that API will do; what only Hocket tells (numbers of the reply) is shown where it comes.
//
// Owns     the connection; a reply owns the thread that reads it.
// Threads  a reply: one user; the server's bytes are read by its own thread.
// Errors   open(): kInvalid for the address, kNotFound for the model, those of http/client.h; chat(): in the reply.
#pragma once

#include <memory>
#include <string>

#include "cli/chat_peer.h"

namespace hocket {

class RemoteChat final : public ChatPeer {
 public:
  // model "": the first that the server has.
  static Result<std::unique_ptr<RemoteChat>> open(const std::string& url, const std::string& api_key,
                                                  const std::string& model);

  std::string model_id() const override { return model_; }
  std::size_t n_ctx() const override { return n_ctx_; }
  Result<std::unique_ptr<Reply>> chat(ChatRequest request) override;

 private:
  RemoteChat(std::string url, std::string api_key) : url_(std::move(url)), api_key_(std::move(api_key)) {}

  const std::string url_, api_key_;
  std::string model_;
  std::size_t n_ctx_ = 0;
};

}  // namespace hocket
