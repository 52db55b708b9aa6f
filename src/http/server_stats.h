// http/server_stats.h: what the server counts of its connections and responses.
//
// Owns     counters. Borrows the table.
// Threads  any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "http/connection_table.h"

namespace hocket {

class ServerStats {
 public:
  explicit ServerStats(const ConnectionTable& table) : table_(table) {}

  void count_response(int status) {
    if (status >= 100 && status < 600) ++by_class_[static_cast<std::size_t>(status / 100)];
  }
  // kind: 2 for 2xx.
  uint64_t n_responses(int kind) const { return by_class_.at(static_cast<std::size_t>(kind)); }
  std::size_t n_connections() const { return table_.size(); }

 private:
  const ConnectionTable& table_;
  std::array<std::atomic<uint64_t>, 6> by_class_{};
};

}  // namespace hocket
