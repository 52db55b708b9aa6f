#include "engine/generation_loop.h"

#include <utility>

#include "base/log.h"

namespace hocket {
namespace {

// How often later jobs may start before one that waits for cells.
constexpr int kMostPassedOver = 32;
// Deadlines of paused jobs are looked at so often.
constexpr std::chrono::milliseconds kLookInterval{50};

}  // namespace

void GenerationLoop::run() {
  while (true) {
    const bool closed = queue_->closed();
    for (const auto& task : queue_->take_posted()) task();
    start_jobs();
    if (scheduler_.n_running() == 0) {
      if (closed) return;
      queue_->wait_for_change();
      continue;
    }
    for (Scheduler::Ended& ended : scheduler_.turn()) end(static_cast<Job&>(*ended.work), std::move(ended.result));
    if (scheduler_.n_running() > 0 && scheduler_.stalled()) queue_->wait_for_change(Clock::now() + kLookInterval);
  }
}

void GenerationLoop::start_jobs() {
  if (scheduler_.n_running() == scheduler_.n_lanes()) return;
  std::vector<Job*> skipped;
  for (const std::shared_ptr<Job>& job : queue_->waiting()) {
    if (scheduler_.n_running() == scheduler_.n_lanes()) return;
    if (!scheduler_.fits(job->demand())) {
      if (job->control().n_passed_over >= kMostPassedOver) return;
      skipped.push_back(job.get());
      continue;
    }
    if (!queue_->start(job)) continue;
    for (Job* other : skipped) ++other->control().n_passed_over;
    scheduler_.add(job);
  }
}

void GenerationLoop::end(Job& job, Result<void> result) {
  if (!result) {
    // What a step reports as cancelled may be any of the two.
    if (Result<void> asked = job.check(); !asked) result = std::move(asked);
  }
  const RequestStatus status = job.control().status();
  log_debug("request {}: {} prompt tokens, {} completion tokens, {:.0f} ms{}{}", status.request_id,
            status.prompt_tokens, status.completion_tokens, status.age_ms, result ? "" : ", ",
            result ? std::string_view() : error_code_name(result.error().code));
  // Counted before the client hears of it.
  if (result) {
    const Job::Numbers numbers = job.numbers();
    metrics_->ended(numbers.outcome, numbers.usage, numbers.timings);
  } else {
    metrics_->failed(result.error());
  }
  queue_->finish(job);
  if (result) {
    job.complete();
  } else {
    job.fail(result.error());
  }
}

}  // namespace hocket
