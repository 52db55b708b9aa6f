// cli/chat_console.h: a conversation in the terminal.
//
// The answer goes to standard output; prompts, hints and the line of numbers after each answer go to standard error.
//
// Owns     the conversation. Borrows the peer.
// Threads  one thread; stop() from any.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "cli/chat_peer.h"
#include "cli/console_commands.h"
#include "cli/conversation.h"
#include "cli/signals.h"
#include "cli/turn_reader.h"

namespace hocket {

struct ConsoleOptions {
  std::string system;
  bool thinking = true;
  bool show_thinking = true;
  bool quiet = false;  // no numbers, no prompts
  GenerationParams params;
};

class ChatConsole {
 public:
  ChatConsole(ChatPeer& peer, ConsoleOptions options);

  // Answers once; the exit code.
  int answer_once(const std::string& prompt);
  // Reads turns until the input ends, /quit or stop(); the exit code.
  int converse();
  // Ends the answer and the conversation. From any thread.
  void stop();

 private:
  // Adds the user's turn and the answer to the conversation. Returns an error's exit code, or 0.
  int answer(const std::string& turn);
  bool wants_stop();
  std::string reason_text(const ReplyDone& done, FinishReason reason) const;
  void print_delta(const ReplyDelta& delta, std::string& content);
  void print_numbers(const ReplyDone& done, FinishReason reason) const;

  ChatPeer& peer_;
  ConsoleOptions options_;
  InterruptFlag interrupt_;
  std::optional<TurnReader> turns_;  // while conversing: one answer leaves what is typed to the shell
  Conversation conversation_;
  ConsoleCommands commands_;
  bool terminal_in_, terminal_out_;
  bool in_thinking_ = false;
  std::atomic<bool> stopping_{false};
};

}  // namespace hocket
