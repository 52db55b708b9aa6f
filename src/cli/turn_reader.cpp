#include "cli/turn_reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace hocket {

TurnReader::TurnReader(InterruptFlag& interrupt, bool prompts)
    : prompts_(prompts && ::isatty(STDIN_FILENO) != 0), lines_(interrupt) {
  if (::isatty(STDIN_FILENO) != 0) editor_ = LineEditor::open(interrupt, history_.load());
}

TurnReader::Status TurnReader::read_line(const char* prompt, std::string& line) {
  if (editor_) {
    switch (editor_->read(prompts_ ? prompt : "", line)) {
      case LineEditor::Status::kLine:
        return Status::kTurn;
      case LineEditor::Status::kInterrupted:
        return Status::kInterrupted;
      case LineEditor::Status::kEnd:
        return Status::kEnd;
    }
  }
  if (prompts_) fmt::print(stderr, "{}", prompt);
  switch (lines_.read(line)) {
    case LineReader::Status::kLine:
      return Status::kTurn;
    case LineReader::Status::kInterrupted:
      return Status::kInterrupted;
    case LineReader::Status::kEnd:
      break;
  }
  return Status::kEnd;
}

TurnReader::Status TurnReader::read(std::string& turn) {
  static const std::string kQuotes = "\"\"\"";
  turn.clear();
  bool quoted = false;
  for (bool first = true;; first = false) {
    std::string line;
    const Status status = read_line(first ? "> " : "… ", line);
    if (status == Status::kInterrupted) return status;
    if (status == Status::kEnd) {
      if (first) return status;
      break;
    }
    if (first && line.compare(0, kQuotes.size(), kQuotes) == 0) {
      quoted = true;
      line.erase(0, kQuotes.size());
    }
    if (quoted) {
      const std::size_t end = line.find(kQuotes);
      if (end != std::string::npos) {
        turn += line.substr(0, end);
        break;
      }
      turn += line + '\n';
    } else if (!line.empty() && line.back() == '\\') {
      line.pop_back();
      turn += line + '\n';
    } else {
      turn += line;
      break;
    }
  }
  if (editor_ && !turn.empty() && turn != last_) {
    editor_->remember(turn);
    history_.add(turn);
    last_ = turn;
  }
  return Status::kTurn;
}

}  // namespace hocket
