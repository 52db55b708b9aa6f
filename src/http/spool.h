// http/spool.h: bytes that arrive piece by piece: a few in memory, many in a file without a name.
//
// Owns     the bytes, on the disk of the temporary folder.
// Threads  one user at a time.
// Errors   kIo when the temporary folder is full or cannot be written to.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hocket {

class Spool {
 public:
  Spool() = default;
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  Result<void> append(std::string_view bytes);
  std::size_t size() const { return n_bytes_; }
  // All of it, until the next append().
  Result<std::span<const std::byte>> view();

 private:
  Result<void> write_out(std::string_view bytes);
  void unmap();

  std::string memory_;
  int fd_ = -1;
  std::size_t n_bytes_ = 0;
  void* mapped_ = nullptr;
  std::size_t n_mapped_ = 0;
};

}  // namespace hocket
