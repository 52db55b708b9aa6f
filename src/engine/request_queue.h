// engine/request_queue.h: requests in the order in which they came, and the one that runs.
//
// Owns     queued jobs.
// Threads  pop() and finish() by the generation thread; everything else from any thread.
// Errors   push(): kBusy with reason "queue_full" or "draining"; kInvalid when the id is in use. cancel(): kNotFound.
//          Jobs that leave without having run are failed: kCancelled (reason "draining" by cancel_all()), or kTimeout
//          with reason "queue_timeout".
// Cost     nothing here waits for the job that runs, except wait_idle().
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/job.h"

namespace hocket {

class RequestQueue {
 public:
  // `metrics` counts what is refused and what leaves without having run.
  RequestQueue(std::size_t capacity, std::shared_ptr<MetricsRecorder> metrics)
      : capacity_(capacity), metrics_(std::move(metrics)) {}

  // Whether push() would succeed now: asked before the costly checks of a request.
  Result<void> admits(std::string_view id) const;
  Result<void> push(std::shared_ptr<Job> job);

  // The next job, which then counts as running; nullptr once closed.
  std::shared_ptr<Job> pop();
  void finish();

  Result<void> cancel(std::string_view id);
  // The same for exactly this request; nothing happens when it has left.
  void withdraw(const JobControl& control);
  // Fails queued jobs whose time in the queue is over.
  void expire();
  std::vector<RequestStatus> status() const;

  void refuse_new();
  bool wait_idle(std::chrono::milliseconds limit);  // false: jobs are left
  void cancel_all();                                // because the server ends: with reason "draining"
  void close();                                     // refuses, cancels, and lets pop() return

 private:
  void fail(Job& job, Error error) const;
  Result<void> admits_locked(std::string_view id) const;
  template <class Predicate>
  bool cancel_if(Predicate matches);
  template <class Predicate>
  std::vector<std::shared_ptr<Job>> take_out(Predicate leaves);

  const std::size_t capacity_;
  const std::shared_ptr<MetricsRecorder> metrics_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> queued_;
  std::shared_ptr<Job> running_;
  bool refusing_ = false;
  bool closed_ = false;
};

}  // namespace hocket
