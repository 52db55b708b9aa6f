// cli/turn_reader.h: what a person says next: from a terminal with line editing, or from a pipe.
//
// A line that ends in a backslash goes on in the next; """ opens a text of several lines that the next """ closes.
//
// Owns     the line editor, the history.
// Threads  one thread.
#pragma once

#include <memory>
#include <string>

#include "cli/history_file.h"
#include "cli/line_editor.h"
#include "cli/signals.h"
#include "cli/text_input.h"

namespace hocket {

class TurnReader {
 public:
  // Without `prompts` nothing but what is typed shows on the terminal.
  TurnReader(InterruptFlag& interrupt, bool prompts);

  enum class Status { kTurn, kEnd, kInterrupted };
  Status read(std::string& turn);
  // Whether `word` was typed on a line of its own while nobody read.
  bool typed(const std::string& word) { return editor_ && editor_->typed(word); }

 private:
  Status read_line(const char* prompt, std::string& line);

  const bool prompts_;
  HistoryFile history_;
  LineReader lines_;
  std::unique_ptr<LineEditor> editor_;  // nullptr: plain lines
  std::string last_;
};

}  // namespace hocket
