// engine/job.h: one request on its way through the queue.
//
// Threads  what LaneWork has and numbers() on the generation thread only; fail() also from the thread that took the job
//          out of the queue; control() from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/result.h"
#include "engine/flow_control.h"
#include "engine/requests.h"
#include "engine/service_metrics.h"
#include "runtime/lanes/lane_work.h"

namespace hocket {

// What others may see and do while the job waits and runs.
struct JobControl {
  std::string id;
  std::string tenant;
  CancelToken cancel;
  std::atomic<bool> draining{false};                            // why it was cancelled: the server ends
  Clock::time_point submitted = Clock::now();                   // when the request came
  Clock::time_point queued = submitted;                         // when it had been checked
  Clock::time_point queue_deadline = Clock::time_point::max();  // to be started by then
  Clock::time_point deadline = Clock::time_point::max();        // to be finished by then
  std::atomic<RequestPhase> phase{RequestPhase::kQueued};
  std::atomic<std::size_t> prompt_done{0};
  int n_passed_over = 0;         // later jobs that started before; the generation thread's
  std::size_t prompt_total = 0;  // set before the job is queued
  std::atomic<std::size_t> completion_tokens{0};
  std::atomic<std::size_t> drafted_tokens{0}, accepted_tokens{0};
  std::atomic<std::size_t> n_steps{0};
  std::shared_ptr<FlowControl> flow = std::make_shared<FlowControl>();

  RequestStatus status() const {
    return {id,
            phase.load(),
            prompt_done.load(),
            prompt_total,
            completion_tokens.load(),
            drafted_tokens.load(),
            accepted_tokens.load(),
            ms_since(submitted),
            flow->n_chunks(),
            n_steps.load()};
  }
  Error cancelled() const {
    if (!draining) return Error(ErrorCode::kCancelled, "the request was cancelled");
    Error error(ErrorCode::kCancelled, "the server is shutting down");
    error.reason = "draining";
    return error;
  }
  // kTimeout when the deadline has passed, kCancelled when that was asked or the client has stopped acknowledging.
  Result<void> check() const {
    if (cancel.cancelled()) return cancelled();
    if (Clock::now() >= deadline) {
      Error error(ErrorCode::kTimeout, "the request took longer than the server allows");
      error.reason = "request_timeout";
      return error;
    }
    return flow->check();
  }
};

class Job : public LaneWork {
 public:
  explicit Job(std::shared_ptr<JobControl> control) : control_(std::move(control)) {}

  JobControl& control() const { return *control_; }
  const std::string& tenant() const override { return control_->tenant; }
  const CancelToken& cancel() const override { return control_->cancel; }
  Result<void> check() override { return control_->check(); }

  // What work that is done came to; asked once, before complete().
  struct Numbers {
    RequestOutcome outcome = RequestOutcome::kStop;
    Usage usage;
    Timings timings;
  };
  virtual Numbers numbers() = 0;
  // Ends the reply after work that is done, once the job does not count as running any more.
  virtual void complete() = 0;
  // Ends the reply with an error (also before start()).
  virtual void fail(Error error) = 0;

 private:
  std::shared_ptr<JobControl> control_;
};

}  // namespace hocket
