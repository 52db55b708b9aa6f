// cli/chat_console.h: a conversation in the terminal.
//
// The answer goes to standard output; prompts, hints and the line of numbers after each answer go to standard error.
//
// Owns     the history. Borrows the service.
// Threads  the main thread.
#pragma once

#include <string>
#include <vector>

#include "cli/signals.h"
#include "cli/text_input.h"
#include "engine/chat_service.h"

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
  ChatConsole(ChatService& service, ConsoleOptions options);

  // Answers once; the exit code.
  int answer_once(const std::string& prompt);
  // Reads turns until the input ends or /quit; the exit code.
  int converse();

 private:
  enum class Input { kTurn, kEnd, kInterrupted };
  Input read_turn(std::string& turn);
  void reset();
  // Adds the user's turn and the answer to the history. Returns an error's exit code, or 0.
  int answer(const std::string& turn);
  void print_delta(const ReplyDelta& delta, std::string& content);
  void print_numbers(const ReplyDone& done, const std::string& reason) const;

  ChatService& service_;
  ConsoleOptions options_;
  InterruptFlag interrupt_;
  LineReader lines_;
  std::vector<Message> history_;
  bool terminal_in_, terminal_out_;
  bool in_thinking_ = false;
};

}  // namespace hocket
