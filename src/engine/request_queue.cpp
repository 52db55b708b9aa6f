#include "engine/request_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
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

Error not_found(std::string_view id) {
  Error error(ErrorCode::kNotFound, fmt::format("no request \"{}\" is running or queued", id), "request_id");
  error.reason = "request_not_found";
  return error;
}

}  // namespace

void RequestQueue::changed_locked() {
  ++n_changes_;
  changed_.notify_all();
}

void RequestQueue::fail(Job& job, Error error) const {
  metrics_->failed(error);
  job.fail(std::move(error));
}

Result<void> RequestQueue::admits_locked(std::string_view id) const {
  if (refusing_ || closed_) {
    metrics_->refused();
    return busy("the server is shutting down", "draining");
  }
  if (queued_.size() >= capacity_ + (n_lanes_ - std::min(n_lanes_, running_.size()))) {
    Error error = busy(fmt::format("the queue is full ({} requests)", queued_.size()), "queue_full");
    error.numbers = {{"queued", static_cast<int64_t>(queued_.size())}};
    metrics_->refused();
    return error;
  }
  const auto same_id = [&](const std::shared_ptr<Job>& job) { return job->control().id == id; };
  if (std::any_of(running_.begin(), running_.end(), same_id) || std::any_of(queued_.begin(), queued_.end(), same_id)) {
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
  changed_locked();
  return {};
}

std::vector<std::shared_ptr<Job>> RequestQueue::waiting() {
  expire();
  const std::lock_guard lock(mutex_);
  struct Share {
    std::size_t n_running = 0;
    uint64_t last_start = 0;
    auto operator<=>(const Share&) const = default;
  };
  std::map<std::string, Share> shares;
  for (const auto& [tenant, start] : last_start_) shares[tenant].last_start = start;
  for (const auto& job : running_) ++shares[job->tenant()].n_running;
  uint64_t n_starts = n_starts_;
  std::vector<std::shared_ptr<Job>> left(queued_.begin(), queued_.end()), order;
  while (!left.empty()) {
    const auto next = std::min_element(left.begin(), left.end(), [&](const auto& a, const auto& b) {
      return shares[a->tenant()] < shares[b->tenant()];
    });
    Share& share = shares[(*next)->tenant()];
    ++share.n_running;
    share.last_start = ++n_starts;
    order.push_back(std::move(*next));
    left.erase(next);
  }
  return order;
}

bool RequestQueue::start(const std::shared_ptr<Job>& job) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(queued_.begin(), queued_.end(), job);
  if (found == queued_.end()) return false;
  running_.push_back(std::move(*found));
  queued_.erase(found);
  last_start_[job->tenant()] = ++n_starts_;
  const auto here = [&](const std::string& tenant) {
    const auto theirs = [&](const std::shared_ptr<Job>& other) { return other->tenant() == tenant; };
    return std::any_of(queued_.begin(), queued_.end(), theirs) || std::any_of(running_.begin(), running_.end(), theirs);
  };
  std::erase_if(last_start_, [&](const auto& entry) { return !here(entry.first); });
  return true;
}

void RequestQueue::finish(const Job& job) {
  const std::lock_guard lock(mutex_);
  std::erase_if(running_, [&](const auto& other) { return other.get() == &job; });
  changed_locked();
}

void RequestQueue::wait_for_change(Clock::time_point until) {
  std::unique_lock lock(mutex_);
  const auto changed = [&] { return n_changes_ != n_seen_; };
  if (until == Clock::time_point::max()) {
    changed_.wait(lock, changed);
  } else {
    changed_.wait_until(lock, until, changed);
  }
  n_seen_ = n_changes_;
}

bool RequestQueue::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
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
  if (!out.empty()) changed_locked();
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
  bool found = false;
  for (const auto& job : running_) {
    if (!matches(job->control())) continue;
    job->control().cancel.cancel();
    found = true;
  }
  if (found) changed_locked();
  return found;
}

Result<void> RequestQueue::cancel(std::string_view id) {
  if (cancel_if([&](const JobControl& control) { return control.id == id; })) return {};
  return not_found(id);
}

Result<void> RequestQueue::change(std::string_view id, const std::function<Result<void>(Job&)>& act) {
  std::shared_ptr<Job> job;
  {
    const std::lock_guard lock(mutex_);
    const auto same_id = [&](const std::shared_ptr<Job>& other) { return other->control().id == id; };
    if (const auto found = std::find_if(running_.begin(), running_.end(), same_id); found != running_.end()) {
      job = *found;
    } else if (const auto waiting = std::find_if(queued_.begin(), queued_.end(), same_id); waiting != queued_.end()) {
      job = *waiting;
    }
  }
  if (!job) return not_found(id);
  TRY(act(*job));
  const std::lock_guard lock(mutex_);
  changed_locked();
  return {};
}

void RequestQueue::wake() {
  const std::lock_guard lock(mutex_);
  changed_locked();
}

bool RequestQueue::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  posted_.push_back(std::move(task));
  changed_locked();
  return true;
}

std::vector<std::function<void()>> RequestQueue::take_posted() {
  const std::lock_guard lock(mutex_);
  return std::exchange(posted_, {});
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
  for (const auto& job : running_) all.push_back(job->control().status());
  for (const auto& job : queued_) all.push_back(job->control().status());
  return all;
}

void RequestQueue::refuse_new() {
  const std::lock_guard lock(mutex_);
  refusing_ = true;
}

bool RequestQueue::wait_idle(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return queued_.empty() && running_.empty(); });
}

void RequestQueue::cancel_all() {
  for (const auto& job : take_out([](const Job&) { return true; })) {
    job->control().draining = true;
    fail(*job, job->control().cancelled());
  }
  const std::lock_guard lock(mutex_);
  for (const auto& job : running_) {
    job->control().draining = true;  // first: who sees the token must see the reason
    job->control().cancel.cancel();
  }
  changed_locked();
}

void RequestQueue::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_locked();
  }
  cancel_all();
}

}  // namespace hocket
