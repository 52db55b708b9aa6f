// cli/signals.h: Ctrl-C and termination for programs with threads.
//
// Threads  the main thread, before others are started.
#pragma once

#include <chrono>
#include <csignal>
#include <optional>

namespace hocket {

// SIGTERM, SIGHUP and, if `interrupt`, SIGINT arrive only at wait() from now on, in this thread and those it starts.
// SIGPIPE is ignored.
class SignalWait {
 public:
  explicit SignalWait(bool interrupt = true);
  // The next signal, or nullopt after `limit`.
  std::optional<int> wait(std::chrono::milliseconds limit);

 private:
  sigset_t set_;
};

// While one exists (one at most), Ctrl-C sets a flag instead of ending the program.
class InterruptFlag {
 public:
  InterruptFlag();
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;
  // Whether Ctrl-C was pressed since the last call.
  bool take();
  // As Ctrl-C does. From any thread.
  void raise();
  // Readable while there is something to take, so that a poll() can wait for it, too; whichever thread gets the signal.
  int fd() const;
};

}  // namespace hocket
