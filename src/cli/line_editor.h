// cli/line_editor.h: lines typed at a terminal, with arrow keys, a history, search (Ctrl-R) and paste; over libedit.
//
// What is pasted stays one text, line breaks included, until Enter is pressed.
//
// Owns     the terminal's mode while a line is edited.
// Threads  the main thread. At most one editor; it sets the process's character type to UTF-8.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/signals.h"

namespace hocket {

class LineEditor {
 public:
  // nullptr where standard input or error is no terminal, or one that cannot move its cursor. Prompts and echo go to
  // standard error.
  static std::unique_ptr<LineEditor> open(InterruptFlag& interrupt, const std::vector<std::string>& history);
  virtual ~LineEditor() = default;

  enum class Status { kLine, kEnd, kInterrupted };
  virtual Status read(const std::string& prompt, std::string& line) = 0;
  // What the up arrow brings back.
  virtual void remember(const std::string& text) = 0;
  // Takes in, without waiting, what was typed outside of read(). True when a line of it was `word`; that line is gone,
  // the rest comes with the next read().
  virtual bool typed(const std::string& word) = 0;
};

}  // namespace hocket
