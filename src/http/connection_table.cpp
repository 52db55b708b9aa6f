#include "http/connection_table.h"

#include <sys/socket.h>

namespace hocket {

Admission ConnectionTable::admit(int socket, const std::string& address) {
  const std::lock_guard lock(mutex_);
  const auto of_address = full_by_address_.find(address);
  const bool address_full = !address.empty() && limits_.max_connections_per_address > 0 &&
                            of_address != full_by_address_.end() &&
                            of_address->second >= limits_.max_connections_per_address;
  sockets_.insert(socket);
  if (n_full_ < limits_.max_connections && !address_full) {
    ++n_full_;
    ++full_by_address_[address];
    return Admission::kFull;
  }
  if (n_reserved_ < limits_.reserved_connections) {
    ++n_reserved_;
    return Admission::kReserved;
  }
  return Admission::kRefused;
}

void ConnectionTable::leave(int socket, const std::string& address, Admission admission) {
  const std::lock_guard lock(mutex_);
  sockets_.erase(socket);
  if (admission == Admission::kFull) {
    --n_full_;
    if (const auto it = full_by_address_.find(address); --it->second == 0) full_by_address_.erase(it);
  } else if (admission == Admission::kReserved) {
    --n_reserved_;
  }
  if (sockets_.empty()) changed_.notify_all();
}

bool ConnectionTable::wait_until_empty(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return sockets_.empty(); });
}

void ConnectionTable::shut_down_all() {
  const std::lock_guard lock(mutex_);
  for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
}

std::size_t ConnectionTable::size() const {
  const std::lock_guard lock(mutex_);
  return sockets_.size();
}

}  // namespace hocket
