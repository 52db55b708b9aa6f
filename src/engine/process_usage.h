// engine/process_usage.h: memory and page faults of this process, and what the machine has left, as the kernel tells.
//
// Threads  any.
// Cost     a system call and a small file of /proc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hocket {

struct ProcessUsage {
  std::size_t rss_bytes = 0;  // mapped weights count as far as they are in memory
  std::size_t peak_rss_bytes = 0;
  int64_t minor_faults = 0;  // since the start
  int64_t major_faults = 0;  // those that waited for a disk
  double cpu_s = 0;          // of all threads, since the start
};

// 0 where the system does not tell.
ProcessUsage process_usage();

// Hands freed memory of the heap back to the system, where the C library keeps it for later. A walk over the heap.
void give_back_memory();

// What new allocations and page cache can take without swapping; 0 where the system does not tell.
std::size_t available_memory_bytes();

}  // namespace hocket
