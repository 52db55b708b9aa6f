#include "cli/signals.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace hocket {
namespace {

int interrupts = -1;  // an eventfd while an InterruptFlag exists

void on_interrupt(int) {
  const int fault = errno;
  const uint64_t one = 1;
  if (write(interrupts, &one, sizeof(one)) < 0) errno = 0;  // full: it is readable anyway
  errno = fault;
}

}  // namespace

SignalWait::SignalWait(bool interrupt) {
  sigemptyset(&set_);
  if (interrupt) sigaddset(&set_, SIGINT);
  sigaddset(&set_, SIGTERM);
  sigaddset(&set_, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

std::optional<int> SignalWait::wait(std::chrono::milliseconds limit) {
  timespec time{};
  time.tv_sec = limit.count() / 1000;
  time.tv_nsec = limit.count() % 1000 * 1'000'000;
  const int signal = sigtimedwait(&set_, nullptr, &time);
  if (signal < 0) return std::nullopt;
  return signal;
}

InterruptFlag::InterruptFlag() {
  interrupts = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;  // whoever waits for Ctrl-C polls fd()
  sigaction(SIGINT, &action, nullptr);
}

InterruptFlag::~InterruptFlag() {
  std::signal(SIGINT, SIG_DFL);
  close(interrupts);
  interrupts = -1;
}

bool InterruptFlag::take() {
  uint64_t n = 0;
  return read(interrupts, &n, sizeof(n)) == sizeof(n);
}

void InterruptFlag::raise() {
  on_interrupt(SIGINT);
}

int InterruptFlag::fd() const {
  return interrupts;
}

}  // namespace hocket
