#include "engine/request_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hocket {
namespace {

Error busy(std::string message, const char* reason) {
  Error error(ErrorCode::kBusy, std::move(message));
  error.reason = reason;
  return error;
}

Error waited_too_long() {
  Error error(ErrorCode::kTimeout, "the request waited longer in the queue than the server allows");
  error.reason = "queue_timeout";
  return error;
}

}  // namespace

void RequestQueue::fail(Job& job, Error error) const {
  metrics_->failed(error);
  job.fail(std::move(error));
}

Result<void> RequestQueue::admits_locked(std::string_view id) const {
  if (refusing_ || closed_) {
    metrics_->refused();
    return busy("the server is shutting down", "draining");
  }
  if (queued_.size() >= capacity_ + (running_ ? 0 : 1)) {
    Error error = busy(fmt::format("the queue is full ({} requests)", queued_.size()), "queue_full");
    error.numbers = {{"queued", static_cast<int64_t>(queued_.size())}};
    metrics_->refused();
    return error;
  }
  const auto same_id = [&](const std::shared_ptr<Job>& job) { return job->control().id == id; };
  if ((running_ && same_id(running_)) || std::any_of(queued_.begin(), queued_.end(), same_id)) {
    return Error(ErrorCode::kInvalid, "another request with this id has not ended yet", "request_id");
  }
  return {};
}

Result<void> RequestQueue::admits(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  return admits_locked(id);
}

Result<void> RequestQueue::push(std::shared_ptr<Job> job) {
  const std::lock_guard lock(mutex_);
  TRY(admits_locked(job->control().id));
  queued_.push_back(std::move(job));
  changed_.notify_all();
  return {};
}

std::shared_ptr<Job> RequestQueue::pop() {
  while (true) {
    std::shared_ptr<Job> late;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return closed_ || !queued_.empty(); });
      if (queued_.empty()) return nullptr;
      std::shared_ptr<Job> job = std::move(queued_.front());
      queued_.pop_front();
      running_ = job;
      if (Clock::now() < job->control().queue_deadline) return job;
      late = std::move(job);
    }
    fail(*late, waited_too_long());
    finish();
  }
}

void RequestQueue::finish() {
  const std::lock_guard lock(mutex_);
  running_.reset();
  changed_.notify_all();
}

template <class Predicate>
std::vector<std::shared_ptr<Job>> RequestQueue::take_out(Predicate leaves) {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Job>> out;
  std::deque<std::shared_ptr<Job>> stay;
  for (std::shared_ptr<Job>& job : queued_) {
    if (leaves(*job)) {
      out.push_back(std::move(job));
    } else {
      stay.push_back(std::move(job));
    }
  }
  queued_ = std::move(stay);
  changed_.notify_all();
  return out;
}

template <class Predicate>
bool RequestQueue::cancel_if(Predicate matches) {
  const auto waiting = take_out([&](const Job& job) { return matches(job.control()); });
  for (const auto& job : waiting) {
    job->control().cancel.cancel();
    fail(*job, job->control().cancelled());
  }
  if (!waiting.empty()) return true;
  const std::lock_guard lock(mutex_);
  if (!running_ || !matches(running_->control())) return false;
  running_->control().cancel.cancel();
  return true;
}

Result<void> RequestQueue::cancel(std::string_view id) {
  if (cancel_if([&](const JobControl& control) { return control.id == id; })) return {};
  return Error(ErrorCode::kNotFound, fmt::format("no request \"{}\" is running or queued", id), "request_id");
}

void RequestQueue::withdraw(const JobControl& control) {
  cancel_if([&](const JobControl& other) { return &other == &control; });
}

void RequestQueue::expire() {
  const auto now = Clock::now();
  for (const auto& job : take_out([&](const Job& j) { return j.control().queue_deadline <= now; })) {
    fail(*job, waited_too_long());
  }
}

std::vector<RequestStatus> RequestQueue::status() const {
  const std::lock_guard lock(mutex_);
  std::vector<RequestStatus> all;
  if (running_) all.push_back(running_->control().status());
  for (const auto& job : queued_) all.push_back(job->control().status());
  return all;
}

void RequestQueue::refuse_new() {
  const std::lock_guard lock(mutex_);
  refusing_ = true;
}

bool RequestQueue::wait_idle(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return queued_.empty() && !running_; });
}

void RequestQueue::cancel_all() {
  for (const auto& job : take_out([](const Job&) { return true; })) {
    job->control().draining = true;
    fail(*job, job->control().cancelled());
  }
  const std::lock_guard lock(mutex_);
  if (!running_) return;
  running_->control().draining = true;  // first: who sees the token must see the reason
  running_->control().cancel.cancel();
}

void RequestQueue::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  cancel_all();
}

}  // namespace hocket
