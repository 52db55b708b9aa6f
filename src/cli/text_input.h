// cli/text_input.h: text from files and from standard input.
//
// Threads  the main thread.
// Errors   kIo with the path.
#pragma once

#include <string>

#include "base/result.h"

namespace hocket {

// All of a file; "-" is standard input.
Result<std::string> read_text(const std::string& path);

// Lines of standard input that a signal can interrupt.
class LineReader {
 public:
  enum class Status { kLine, kEnd, kInterrupted };
  Status read(std::string& line);

 private:
  std::string buffer_;
  bool ended_ = false;
};

}  // namespace hocket
