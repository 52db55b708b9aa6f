#include "tokenizer/compile_workers.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

namespace hocket {

CompileWorkers::~CompileWorkers() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return n_free_ == n_slots_; });
}

Result<void> CompileWorkers::run(std::function<void()> job, double max_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                               std::chrono::duration<double, std::milli>(max_ms));
  std::unique_lock lock(mutex_);
  if (!changed_.wait_until(lock, deadline, [this] { return n_free_ > 0; }))
    return Error(ErrorCode::kBusy, "other grammars are still being compiled; try again later");
  --n_free_;
  const auto done = std::make_shared<bool>(false);
  try {
    std::thread([this, done, job = std::move(job)] {
      job();
      // Notifying under the lock: the destructor may run as soon as it is released.
      const std::lock_guard guard(mutex_);
      *done = true;
      ++n_free_;
      changed_.notify_all();
    }).detach();
  } catch (const std::system_error& e) {
    ++n_free_;
    return Error(ErrorCode::kBusy, fmt::format("no thread for compiling: {}", e.what()));
  }
  if (!changed_.wait_until(lock, deadline, [&] { return *done; }))
    return Error(ErrorCode::kTimeout, fmt::format("compiling takes longer than {} ms", max_ms));
  return {};
}

}  // namespace hocket
