#include "compute/crew.h"

#include <fmt/format.h>

#include <chrono>
#include <system_error>

#include "base/check.h"

namespace hocket {
namespace {

// Between two operations that have something to share lie some that have not, of a few microseconds.
constexpr auto kSpin = std::chrono::microseconds(100);
// After this long a helper that is still at work has probably lost its core, perhaps to the one that waits.
constexpr auto kPatience = std::chrono::microseconds(20);
constexpr int kLooksBetweenClocks = 32;

thread_local Crew* current_crew = nullptr;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

// Whether `found` became true in time.
template <class Found>
bool spin(std::chrono::microseconds time, const Found& found) {
  const auto end = std::chrono::steady_clock::now() + time;
  do {
    for (int i = 0; i < kLooksBetweenClocks; ++i) {
      if (found()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return found();
}

}  // namespace

Result<std::unique_ptr<Crew>> Crew::create(int n_threads) {
  CHECK(n_threads >= 1);
  std::unique_ptr<Crew> crew(new Crew());
  try {
    for (int i = 1; i < n_threads; ++i) crew->threads_.emplace_back(&Crew::help, crew.get());
  } catch (const std::system_error& e) {
    return Error(ErrorCode::kOutOfMemory, fmt::format("cannot start {} threads: {}", n_threads, e.what()));
  }
  return crew;
}

Crew::~Crew() {
  stopping_.store(true);
  n_jobs_.fetch_add(1);
  n_jobs_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Crew::take_units() {
  const Job job = job_;
  for (int64_t i = next_.fetch_add(1, std::memory_order_relaxed); i < job.n_units;
       i = next_.fetch_add(1, std::memory_order_relaxed))
    job.call(job.data, i);
}

void Crew::run(const Job& job) {
  if (threads_.empty() || job.n_units <= 1) {
    for (int64_t i = 0; i < job.n_units; ++i) job.call(job.data, i);
    return;
  }
  job_ = job;
  next_.store(0, std::memory_order_relaxed);
  open_.store(true);
  n_jobs_.fetch_add(1);
  if (n_asleep_.load() > 0) n_jobs_.notify_all();
  take_units();
  open_.store(false);
  // Either a helper sees that the job is closed, or this sees the helper.
  const auto alone = [this] { return n_inside_.load() == 0; };
  while (!spin(kPatience, alone)) std::this_thread::yield();
}

void Crew::help() {
  uint32_t seen = 0;
  while (!stopping_.load()) {
    const auto called = [&] { return n_jobs_.load() != seen; };
    if (!spin(kSpin, called)) {
      n_asleep_.fetch_add(1);
      if (!called()) n_jobs_.wait(seen);
      n_asleep_.fetch_sub(1);
    }
    seen = n_jobs_.load();
    n_inside_.fetch_add(1);
    if (open_.load()) take_units();
    n_inside_.fetch_sub(1);
  }
}

Crew* Crew::current() {
  return current_crew;
}

Crew::Helped::Helped(Crew& crew) {
  CHECK(current_crew == nullptr);
  current_crew = &crew;
}

Crew::Helped::~Helped() {
  current_crew = nullptr;
}

}  // namespace hocket
