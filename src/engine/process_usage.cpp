#include "engine/process_usage.h"

#include <features.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

namespace hocket {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

ProcessUsage process_usage() {
  ProcessUsage out;
  if (const File file(std::fopen("/proc/self/statm", "re"), std::fclose); file) {
    long total = 0, resident = 0;
    if (std::fscanf(file.get(), "%ld %ld", &total, &resident) == 2) {
      out.rss_bytes = static_cast<std::size_t>(resident) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    }
  }
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    out.peak_rss_bytes = static_cast<std::size_t>(usage.ru_maxrss) * 1024;
    out.minor_faults = usage.ru_minflt;
    out.major_faults = usage.ru_majflt;
    out.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  return out;
}

void give_back_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

std::size_t available_memory_bytes() {
  const File file(std::fopen("/proc/meminfo", "re"), std::fclose);
  if (!file) return 0;
  char line[128];
  while (std::fgets(line, sizeof(line), file.get()) != nullptr) {
    std::size_t kib = 0;
    if (std::sscanf(line, "MemAvailable: %zu kB", &kib) == 1) return kib * 1024;
  }
  return 0;
}

}  // namespace hocket
