#include "cli/chat_console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "cli/command.h"

namespace hocket {
namespace {

const char* finish_word(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kToolCalls:
      return "tool_calls";
  }
  return "stop";
}

void print_now(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

ChatConsole::ChatConsole(ChatService& service, ConsoleOptions options)
    : service_(service),
      options_(std::move(options)),
      terminal_in_(::isatty(STDIN_FILENO) != 0),
      terminal_out_(::isatty(STDOUT_FILENO) != 0) {
  reset();
}

void ChatConsole::reset() {
  history_.clear();
  if (options_.system.empty()) return;
  Message system;
  system.role = "system";
  system.content = options_.system;
  history_.push_back(std::move(system));
}

int ChatConsole::answer_once(const std::string& prompt) {
  return answer(prompt);
}

int ChatConsole::converse() {
  const bool hints = terminal_in_ && !options_.quiet;
  if (hints) {
    fmt::print(stderr,
               "Chatting with {}. /reset forgets, /quit ends, \\ at the end of a line or \"\"\" for more lines.\n",
               service_.info().model_id);
  }
  int result = 0;
  while (true) {
    if (hints) fmt::print(stderr, "> ");
    std::string turn;
    const Input input = read_turn(turn);
    if (input == Input::kEnd) break;
    if (input == Input::kInterrupted) {
      interrupt_.take();
      if (hints) fmt::print(stderr, "\n(/quit or Ctrl-D ends)\n");
      continue;
    }
    if (turn == "/quit" || turn == "/exit") break;
    if (turn == "/reset") {
      reset();
      if (hints) fmt::print(stderr, "(forgotten)\n");
      continue;
    }
    if (turn == "/help") {
      fmt::print(stderr, "/reset  forget the conversation\n/quit   end\n");
      continue;
    }
    if (turn.find_first_not_of(" \t\n") == std::string::npos) continue;
    const int code = answer(turn);
    // A person can go on after a failure; a script wants to know.
    if (code != 0 && !terminal_in_) result = code;
  }
  if (hints) fmt::print(stderr, "\n");
  return result;
}

ChatConsole::Input ChatConsole::read_turn(std::string& turn) {
  static const std::string kQuotes = "\"\"\"";
  turn.clear();
  bool quoted = false;
  bool first = true;
  while (true) {
    std::string line;
    const LineReader::Status status = lines_.read(line);
    if (status == LineReader::Status::kInterrupted) return Input::kInterrupted;
    if (status == LineReader::Status::kEnd) return first ? Input::kEnd : Input::kTurn;
    if (first && line.compare(0, kQuotes.size(), kQuotes) == 0) {
      quoted = true;
      line.erase(0, kQuotes.size());
    }
    first = false;
    if (quoted) {
      const std::size_t end = line.find(kQuotes);
      if (end != std::string::npos) {
        turn += line.substr(0, end);
        return Input::kTurn;
      }
      turn += line + '\n';
    } else if (!line.empty() && line.back() == '\\') {
      line.pop_back();
      turn += line + '\n';
    } else {
      turn += line;
      return Input::kTurn;
    }
    if (terminal_in_ && !options_.quiet) fmt::print(stderr, "… ");
  }
}

int ChatConsole::answer(const std::string& turn) {
  Message user;
  user.role = "user";
  user.content = turn;
  history_.push_back(std::move(user));

  ChatRequest request;
  request.messages = history_;
  request.enable_thinking = options_.thinking;
  request.params = options_.params;
  auto reply = service_.chat(std::move(request));
  if (!reply) {
    history_.pop_back();
    return report_failure(reply.error());
  }
  std::string content;
  std::string reason;
  bool interrupted = false;
  while (true) {
    const auto event = (*reply)->next(std::chrono::milliseconds(50));
    if (interrupt_.take()) {
      interrupted = true;
      (*reply)->cancel();
    }
    if (!event) {
      print_now("\n");
      if (!interrupted) {
        history_.pop_back();
        return report_failure(event.error());
      }
      if (!options_.quiet) fmt::print(stderr, "[stopped]\n");
      break;
    }
    if (!event->has_value()) continue;
    if (const auto* delta = std::get_if<DeltaEvent>(&**event)) {
      for (const ReplyDelta& part : delta->deltas) print_delta(part, content);
    } else if (const auto* finished = std::get_if<ChoiceFinished>(&**event)) {
      reason = finish_word(finished->reason);
    } else if (const auto* done = std::get_if<ReplyDone>(&**event)) {
      print_now("\n");
      if (!options_.quiet) print_numbers(*done, reason);
      break;
    }
  }
  in_thinking_ = false;
  Message assistant;
  assistant.role = "assistant";
  assistant.content = std::move(content);
  history_.push_back(std::move(assistant));
  return interrupted && !terminal_in_ ? kExitRuntime : 0;
}

void ChatConsole::print_delta(const ReplyDelta& delta, std::string& content) {
  const bool thinking = delta.kind == ReplyDelta::Kind::kReasoning;
  const bool show = options_.show_thinking && terminal_out_;
  if (show && thinking != in_thinking_) print_now(thinking ? "\033[2m" : "\033[0m\n");
  in_thinking_ = thinking;
  if (delta.kind == ReplyDelta::Kind::kContent) content += delta.text;
  if (delta.kind == ReplyDelta::Kind::kContent || (thinking && show)) print_now(delta.text);
}

void ChatConsole::print_numbers(const ReplyDone& done, const std::string& reason) const {
  const Timings& times = done.timings;
  const double rate = times.decode_ms > 0 ? 1000.0 * static_cast<double>(times.decode_tokens) / times.decode_ms : 0.0;
  std::string drafts;
  if (times.drafted_tokens > 0) {
    drafts = fmt::format("{} of {} drafted tokens taken, ", times.accepted_tokens, times.drafted_tokens);
  }
  fmt::print(stderr, "[first token after {:.0f} ms, {} tokens, {:.1f} tokens/s, {}{}]\n", times.ttft_ms,
             done.usage.completion_tokens, rate, drafts, reason);
}

}  // namespace hocket
