// engine/request_queue.h: requests that wait, and those that run.
//
// They start in the order in which they came, but take turns by tenant: whoever runs least goes first, of equals the
// one who started something longest ago.
//
// Owns     its share of every job.
// Threads  waiting(), start(), finish() and wait_for_change() by the generation thread; everything else from any
// thread. Errors   push(): kBusy with reason "queue_full" or "draining"; kInvalid when the id is in use. cancel(),
// change():
//          kNotFound with reason "request_not_found".
//          Jobs that leave without having run are failed: kCancelled (reason "draining" by cancel_all()), or kTimeout
//          with reason "queue_timeout".
// Cost     nothing here waits for jobs that run, except wait_idle().
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/job.h"

namespace hocket {

class RequestQueue {
 public:
  // `capacity` jobs may wait beside the n_lanes that run. `metrics` counts what is refused and what leaves without
  // having run.
  RequestQueue(std::size_t capacity, std::size_t n_lanes, std::shared_ptr<MetricsRecorder> metrics)
      : capacity_(capacity), n_lanes_(n_lanes), metrics_(std::move(metrics)) {}

  // Whether push() would succeed now: asked before the costly checks of a request.
  Result<void> admits(std::string_view id) const;
  Result<void> push(std::shared_ptr<Job> job);

  // In the order in which they should start; late ones have left.
  std::vector<std::shared_ptr<Job>> waiting();
  // The job counts as running from now on; false when it does not wait any more.
  bool start(const std::shared_ptr<Job>& job);
  void finish(const Job& job);
  // Returns when anything has changed since the last call, at the latest at `until`.
  void wait_for_change(Clock::time_point until = Clock::time_point::max());
  // No job will come any more.
  bool closed() const;

  Result<void> cancel(std::string_view id);
  // Lets `act` change a request that runs or waits, and the generation thread look at it. kNotFound without one; else
  // what `act` says.
  Result<void> change(std::string_view id, const std::function<Result<void>(Job&)>& act);
  // Lets the generation thread look at everything again.
  void wake();
  // Something for the generation thread to do between two steps; false when it has ended.
  bool post(std::function<void()> task);
  std::vector<std::function<void()>> take_posted();
  // The same as cancel() for exactly this request; nothing happens when it has left.
  void withdraw(const JobControl& control);
  // Fails queued jobs whose time in the queue is over.
  void expire();
  std::vector<RequestStatus> status() const;

  void refuse_new();
  bool wait_idle(std::chrono::milliseconds limit);  // false: jobs are left
  void cancel_all();                                // because the server ends: with reason "draining"
  void close();                                     // refuses and cancels

 private:
  void changed_locked();
  void fail(Job& job, Error error) const;
  Result<void> admits_locked(std::string_view id) const;
  template <class Predicate>
  bool cancel_if(Predicate matches);
  template <class Predicate>
  std::vector<std::shared_ptr<Job>> take_out(Predicate leaves);

  const std::size_t capacity_;
  const std::size_t n_lanes_;
  const std::shared_ptr<MetricsRecorder> metrics_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> queued_;
  std::vector<std::shared_ptr<Job>> running_;
  std::vector<std::function<void()>> posted_;
  std::map<std::string, uint64_t> last_start_;  // of tenants that are here
  uint64_t n_starts_ = 0;
  uint64_t n_changes_ = 0, n_seen_ = 0;
  bool refusing_ = false;
  bool closed_ = false;
};

}  // namespace hocket
