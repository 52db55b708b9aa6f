// base/log_tail.h: the last lines of the process log (up to 512), for those who follow it.
//
// Threads  any.
// Cost     every line is kept once more.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace hocket {

struct LogLine {
  uint64_t number = 0;  // from 1, one more from line to line
  std::string text;     // as it is written, without a line break
};

// Those after `number`; waits up to `wait` for the first.
std::vector<LogLine> log_lines_after(uint64_t number, std::chrono::milliseconds wait);

}  // namespace hocket
