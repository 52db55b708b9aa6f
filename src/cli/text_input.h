// cli/text_input.h: text from files and from standard input.
//
// Threads  the main thread.
// Errors   kIo with the path.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/signals.h"

namespace hocket {

// All of a file; "-" is standard input.
Result<std::string> read_text(const std::string& path);

// Lines of standard input that Ctrl-C can interrupt. Borrows the flag.
class LineReader {
 public:
  explicit LineReader(InterruptFlag& interrupt) : interrupt_(interrupt) {}
  enum class Status { kLine, kEnd, kInterrupted };
  Status read(std::string& line);

 private:
  InterruptFlag& interrupt_;
  std::string buffer_;
  bool ended_ = false;
};

}  // namespace hocket
