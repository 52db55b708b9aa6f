// cli/signals.h: Ctrl-C and termination for programs with threads.
//
// Threads  the main thread, before others are started.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

namespace hocket {

// SIGINT, SIGTERM and SIGHUP arrive only at wait() from now on, in this thread and those it starts. SIGPIPE is ignored.
class SignalWait {
 public:
  SignalWait();
  // The next signal, or nullopt after `limit`.
  std::optional<int> wait(std::chrono::milliseconds limit);
};

// While one exists, Ctrl-C sets a flag and interrupts reading from the terminal instead of ending the program.
class InterruptFlag {
 public:
  InterruptFlag();
  ~InterruptFlag();
  // Whether Ctrl-C was pressed since the last call.
  bool take();
};

}  // namespace hocket
