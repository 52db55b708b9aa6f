#include "cli/chat_console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "cli/command.h"

namespace hocket {
namespace {

void print_now(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

ChatConsole::ChatConsole(ChatPeer& peer, ConsoleOptions options)
    : peer_(peer),
      options_(std::move(options)),
      conversation_(options_.system),
      commands_(conversation_, options_.params,
                [this](const std::string& line, bool failed) {
                  if (failed || terminal_in_ || !options_.quiet) fmt::print(stderr, "{}\n", line);
                }),
      terminal_in_(::isatty(STDIN_FILENO) != 0),
      terminal_out_(::isatty(STDOUT_FILENO) != 0) {}

int ChatConsole::answer_once(const std::string& prompt) {
  return answer(prompt);
}

int ChatConsole::converse() {
  const bool hints = terminal_in_ && !options_.quiet;
  if (hints) fmt::print(stderr, "Chatting with {}. /help lists the commands.\n", peer_.model_id());
  turns_.emplace(interrupt_, !options_.quiet);
  int result = 0;
  while (!stopping_) {
    std::string turn;
    const TurnReader::Status status = turns_->read(turn);
    if (status == TurnReader::Status::kEnd) break;
    if (status == TurnReader::Status::kInterrupted) {
      if (hints && !stopping_) fmt::print(stderr, "\n(/quit or Ctrl-D ends)\n");
      continue;
    }
    if (turn.find_first_not_of(" \t\n") == std::string::npos) continue;
    int code = 0;
    if (ConsoleCommands::is_command(turn)) {
      const ConsoleCommands::Outcome outcome = commands_.run(turn);
      if (outcome == ConsoleCommands::Outcome::kQuit) break;
      code = outcome == ConsoleCommands::Outcome::kFailed ? kExitRuntime : 0;
    } else {
      code = answer(turn);
    }
    // A person can go on after a failure; a script wants to know.
    if (code != 0 && !terminal_in_) result = code;
  }
  if (hints) fmt::print(stderr, "\n");
  return result;
}

void ChatConsole::stop() {
  stopping_ = true;
  interrupt_.raise();
}

// A person may also type the command while the answer is being written.
bool ChatConsole::wants_stop() {
  return interrupt_.take() || (turns_ && turns_->typed("/cancel"));
}

int ChatConsole::answer(const std::string& turn) {
  Message user;
  user.role = "user";
  user.content = turn;
  conversation_.add(std::move(user));

  ChatRequest request;
  request.messages = conversation_.messages();
  request.enable_thinking = options_.thinking;
  request.params = options_.params;
  request.serving.reuse_generated_state = true;
  auto reply = peer_.chat(std::move(request));
  if (!reply) {
    conversation_.drop_last();
    return report_failure(reply.error());
  }
  std::string content;
  FinishReason reason = FinishReason::kStop;
  bool interrupted = false;
  while (true) {
    const auto event = (*reply)->next(std::chrono::milliseconds(50));
    if (!interrupted && wants_stop()) {
      interrupted = true;
      (*reply)->cancel();
    }
    if (!event) {
      print_now("\n");
      if (!interrupted) {
        conversation_.drop_last();
        return report_failure(event.error());
      }
      if (!options_.quiet) fmt::print(stderr, "[stopped]\n");
      break;
    }
    if (!event->has_value()) continue;
    if (const auto* delta = std::get_if<DeltaEvent>(&**event)) {
      for (const ReplyDelta& part : delta->deltas) print_delta(part, content);
    } else if (const auto* finished = std::get_if<ChoiceFinished>(&**event)) {
      reason = finished->reason;
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
  conversation_.add(std::move(assistant));
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

std::string ChatConsole::reason_text(const ReplyDone& done, FinishReason reason) const {
  if (reason != FinishReason::kLength) return reason == FinishReason::kToolCalls ? "tool_calls" : "stop";
  if (done.details->context_full) return fmt::format("length: the context of {} tokens is full", peer_.n_ctx());
  return fmt::format("length: the limit of {} tokens", done.details->max_tokens);
}

void ChatConsole::print_numbers(const ReplyDone& done, FinishReason reason) const {
  const Timings& times = done.timings;
  const double rate = times.decode_ms > 0 ? 1000.0 * static_cast<double>(times.decode_tokens) / times.decode_ms : 0.0;
  std::string drafts;
  if (times.drafted_tokens > 0) {
    drafts = fmt::format("{} of {} drafted tokens taken, ", times.accepted_tokens, times.drafted_tokens);
  }
  fmt::print(stderr, "[first token after {:.0f} ms, {} tokens, {:.1f} tokens/s, {}{}]\n", times.ttft_ms,
             done.usage.completion_tokens, rate, drafts, reason_text(done, reason));
}

}  // namespace hocket
