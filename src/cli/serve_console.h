// cli/serve_console.h: a conversation in the terminal of a server, with the model that it serves.
//
// Its answers are requests like those that come over HTTP: they take a lane, share the cache and keep the model loaded
// while they last only.
//
// Owns     a thread that reads the terminal. Borrows the host.
// Threads  the thread that made it; one at a time, as it takes Ctrl-C.
// Errors   shown in the terminal.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "cli/chat_console.h"
#include "engine/model_host.h"

namespace hocket {

class ServeConsole {
 public:
  ServeConsole(ModelHost& host, ConsoleOptions options);
  ~ServeConsole();  // stops an answer, and joins
  ServeConsole(const ServeConsole&) = delete;
  ServeConsole& operator=(const ServeConsole&) = delete;

  // /quit, or the input has ended.
  bool ended() const { return ended_; }

 private:
  const std::unique_ptr<ChatPeer> peer_;
  ChatConsole console_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace hocket
