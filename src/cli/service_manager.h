// cli/service_manager.h: a service manager such as systemd: the sockets it passes, and what it is told: ready,
// stopping, still alive.
//
//   ServiceManager manager;             // from NOTIFY_SOCKET and WATCHDOG_USEC; without them nothing is sent
//   manager.tell("READY=1\nSTATUS=answering");
//   manager.tell_alive();               // now and then; sends when it is time
//
// Owns     a datagram socket.
// Threads  the main thread.
// Errors   none: a manager that does not listen is logged once and left alone.
// Source   sd_notify(3) and sd_listen_fds(3) of systemd.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace hocket {

// The listening sockets that this process was started with (LISTEN_FDS, LISTEN_PID), to be taken once; the caller owns
// them. Usually none.
std::vector<int> take_passed_sockets();

class ServiceManager {
 public:
  ServiceManager();
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // Lines of NAME=VALUE.
  void tell(std::string_view state);
  // WATCHDOG=1, twice as often as the manager wants it.
  void tell_alive();
  // How often tell_alive() should be called; absent: the manager does not watch.
  std::optional<Clock::duration> alive_interval() const { return interval_; }

 private:
  int socket_ = -1;
  sockaddr_un address_{};
  socklen_t n_address_ = 0;
  std::optional<Clock::duration> interval_;
  Clock::time_point next_{};
};

}  // namespace hocket
