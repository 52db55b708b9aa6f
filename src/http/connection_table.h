// http/connection_table.h: who is connected, and how many more may be.
//
// Beyond max_connections, or max_connections_per_address from one address, a connection is admitted as kReserved while
// reserved_connections lasts: it may ask for health and control only, so that full streams never lock an operator out.
//
// Threads  any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "http/options.h"

namespace hocket {

enum class Admission { kFull, kReserved, kRefused };

class ConnectionTable {
 public:
  explicit ConnectionTable(const HttpLimits& limits) : limits_(limits) {}

  // `address` is "" where addresses mean nothing (unix sockets). Every admit() is followed by one leave().
  Admission admit(int socket, const std::string& address);
  void leave(int socket, const std::string& address, Admission admission);

  bool wait_until_empty(std::chrono::milliseconds limit);
  // Ends every connection's reads and writes; their threads then leave.
  void shut_down_all();
  std::size_t size() const;

 private:
  const HttpLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::set<int> sockets_;
  std::map<std::string, std::size_t> full_by_address_;
  std::size_t n_full_ = 0, n_reserved_ = 0;
};

}  // namespace hocket
