#include "cli/signals.h"

#include <csignal>
#include <ctime>

namespace hocket {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void on_interrupt(int) {
  interrupted = 1;
}

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

SignalWait::SignalWait() {
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

std::optional<int> SignalWait::wait(std::chrono::milliseconds limit) {
  const sigset_t set = ending_signals();
  timespec time{};
  time.tv_sec = limit.count() / 1000;
  time.tv_nsec = limit.count() % 1000 * 1'000'000;
  const int signal = sigtimedwait(&set, nullptr, &time);
  if (signal < 0) return std::nullopt;
  return signal;
}

InterruptFlag::InterruptFlag() {
  interrupted = 0;
  struct sigaction action {};
  action.sa_handler = on_interrupt;  // without SA_RESTART: read() returns
  sigaction(SIGINT, &action, nullptr);
}

InterruptFlag::~InterruptFlag() {
  std::signal(SIGINT, SIG_DFL);
}

bool InterruptFlag::take() {
  const bool was = interrupted != 0;
  interrupted = 0;
  return was;
}

}  // namespace hocket
