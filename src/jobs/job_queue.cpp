#include "jobs/job_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/random_id.h"

namespace hocket {
namespace {

constexpr int kMostStarts = 2;

Error not_found(std::string_view id) {
  Error error(ErrorCode::kNotFound, "Job not found", "id");
  error.reason = "job_not_found";
  return error;
}

Error busy(const char* reason, std::string message) {
  Error error(ErrorCode::kBusy, std::move(message));
  error.reason = reason;
  return error;
}

}  // namespace

class JobQueue::Running final : public RunningJob {
 public:
  Running(JobQueue& queue, Entry& entry, std::string request)
      : queue_(queue), entry_(entry), kind_(entry.record.kind), request_(std::move(request)), inputs_(entry.record) {}
  const std::string& kind() const override { return kind_; }
  const std::string& request() const override { return request_; }
  const CancelToken& cancel() const override { return entry_.cancel; }
  Result<std::optional<std::vector<std::byte>>> input(std::string_view name) const override {
    for (std::size_t i = 0; i < inputs_.inputs.size(); ++i) {
      if (inputs_.inputs[i].name != name) continue;
      TRY_ASSIGN(BlobFile file, queue_.store_->open_input(inputs_, i));
      TRY_ASSIGN(std::vector<std::byte> bytes, file.read_rest());
      return std::optional(std::move(bytes));
    }
    return std::optional<std::vector<std::byte>>();
  }
  void progress(std::string_view stage, std::size_t step, std::size_t steps) const override {
    const std::lock_guard lock(queue_.mutex_);
    const auto now = std::chrono::steady_clock::now();
    JobProgress& p = entry_.progress;
    if (p.stage != stage || step < p.step) {
      p.stage = stage;
      entry_.stage_began = now;
    }
    p.step = step;
    p.steps = steps;
    const double elapsed_s = std::chrono::duration<double>(now - entry_.stage_began).count();
    p.eta_s.reset();
    if (step > 0 && steps >= step) p.eta_s = elapsed_s / static_cast<double>(step) * static_cast<double>(steps - step);
  }

 private:
  JobQueue& queue_;
  Entry& entry_;
  const std::string kind_, request_;
  const JobRecord inputs_;  // as it was when the job began
};

Result<std::unique_ptr<JobQueue>> JobQueue::open(const JobQueueOptions& options, JobRunner runner) {
  std::unique_ptr<JobQueue> queue(new JobQueue(options.limits, std::move(runner)));
  TRY_ASSIGN(queue->store_, JobStore::open(options.folder));
  TRY(queue->restore());
  queue->thread_ = std::thread([q = queue.get()] { q->work(); });
  return queue;
}

JobQueue::~JobQueue() {
  stop(std::chrono::milliseconds(0));
}

Result<void> JobQueue::restore() {
  TRY_ASSIGN(std::vector<JobRecord> records, store_->load());
  const std::lock_guard lock(mutex_);
  for (JobRecord& record : records) {
    auto entry = std::make_shared<Entry>();
    entry->number = n_entries_++;
    entry->record = std::move(record);
    JobRecord& r = entry->record;
    entries_.emplace(r.id, entry);
    if (r.state == JobState::kRunning && r.n_starts >= kMostStarts) {
      end(*entry, JobState::kInterrupted, Error(ErrorCode::kInternal, "the program ended twice while this job ran"),
          {});
      log_warn("job {} ({}) was interrupted twice and is given up", r.id, r.kind);
    } else if (!has_ended(r.state)) {
      if (r.state == JobState::kRunning) log_warn("job {} ({}) was interrupted and runs again", r.id, r.kind);
      r.state = JobState::kQueued;
      pending_.push_back(entry);
      continue;
    }
    ended_.push_back(entry);
  }
  std::stable_sort(ended_.begin(), ended_.end(),
                   [](const auto& a, const auto& b) { return a->record.ended_ms < b->record.ended_ms; });
  evict();
  return {};
}

void JobQueue::work() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    evict();
    if (!pending_.empty()) {
      run_next(lock);
    } else if (ended_.empty()) {
      work_.wait(lock);
    } else {
      work_.wait_for(lock, until_next_eviction());
    }
  }
}

void JobQueue::run_next(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Entry> entry = pending_.front();
  pending_.pop_front();
  running_ = entry;
  JobRecord& record = entry->record;
  record.state = JobState::kRunning;
  record.n_starts += 1;
  record.started_ms = unix_now_ms();
  Result<void> stored = store_->update(record);
  auto request = stored ? store_->request(record) : Result<std::string>(stored.error());
  Result<std::vector<JobOutput>> made = std::vector<JobOutput>();
  if (request) {
    const Running running(*this, *entry, *std::move(request));
    lock.unlock();
    try {
      made = runner_(running);
    } catch (const std::exception& e) {
      made = Error(ErrorCode::kInternal, fmt::format("the job stopped by an exception: {}", e.what()));
    }
    lock.lock();
  } else {
    made = request.error();
  }
  entry->progress = {};
  uint64_t n_bytes = 0;
  if (made)
    for (const JobOutput& output : *made) n_bytes += output.bytes.size();

  if (!made && (abandoned_ || made.error().reason == "draining")) {
    put_back(*entry);
  } else if (entry->cancel.cancelled() && !abandoned_) {
    end(*entry, JobState::kCancelled, {}, {});
  } else if (!made) {
    end(*entry, JobState::kFailed, made.error(), {});
  } else if (n_bytes > limits_.max_result_bytes) {
    end(*entry, JobState::kFailed,
        Error(ErrorCode::kOutOfMemory, fmt::format("the results have {} bytes; jobs may keep {} (--job-results)",
                                                   n_bytes, limits_.max_result_bytes)),
        {});
  } else {
    // Large files are written without holding up those who ask.
    JobRecord done = record;
    done.state = JobState::kDone;
    done.ended_ms = unix_now_ms();
    lock.unlock();
    stored = store_->finish(done, *made);
    lock.lock();
    if (stored) {
      record = std::move(done);
    } else {
      end(*entry, JobState::kFailed, stored.error(), {});
    }
  }
  running_.reset();
  if (has_ended(record.state)) {
    retire(entry);
    const std::string_view why = record.error ? std::string_view(record.error->message) : std::string_view();
    log_info("job {} ({}) {} after {:.1f} s{}{}", record.id, record.kind, job_state_name(record.state),
             static_cast<double>(record.ended_ms - record.started_ms) / 1000, why.empty() ? "" : ": ", why);
    if (entry->forgotten) drop(entries_.find(record.id));
  }
  changed_.notify_all();
}

// What the disk refuses is logged: the state in memory holds until the program ends.
void JobQueue::end(Entry& entry, JobState state, std::optional<Error> error, std::span<const JobOutput> outputs) {
  entry.record.state = state;
  entry.record.error = std::move(error);
  entry.record.ended_ms = unix_now_ms();
  if (const auto stored = store_->finish(entry.record, outputs); !stored)
    log_error("job {}: {}", entry.record.id, stored.error().message);
}

void JobQueue::put_back(Entry& entry) {
  entry.record.state = JobState::kQueued;
  entry.record.n_starts -= 1;
  entry.record.started_ms = 0;
  if (const auto stored = store_->update(entry.record); !stored)
    log_error("job {}: {}", entry.record.id, stored.error().message);
}

void JobQueue::retire(const std::shared_ptr<Entry>& entry) {
  ended_.push_back(entry);
  const JobRecord& record = entry->record;
  JobStats::Ended& ended = n_ended_[record.kind];
  ended.n[static_cast<std::size_t>(record.state)] += 1;
  if (record.started_ms != 0) ended.run_s += static_cast<double>(record.ended_ms - record.started_ms) / 1000;
}

void JobQueue::drop(Entries::iterator it) {
  const std::shared_ptr<Entry> entry = it->second;
  if (const auto removed = store_->remove(entry->record); !removed)
    log_error("job {}: {}", entry->record.id, removed.error().message);
  entries_.erase(it);
  std::erase(ended_, entry);
}

void JobQueue::evict() {
  uint64_t n_bytes = 0;
  for (const auto& entry : ended_) n_bytes += entry->record.result_bytes();
  const int64_t oldest_kept = unix_now_ms() - limits_.keep.count();
  while (!ended_.empty()) {
    const JobRecord& oldest = ended_.front()->record;
    if (n_bytes <= limits_.max_result_bytes && ended_.size() <= limits_.max_ended && oldest.ended_ms > oldest_kept)
      return;
    n_bytes -= oldest.result_bytes();
    drop(entries_.find(oldest.id));
  }
}

std::chrono::milliseconds JobQueue::until_next_eviction() const {
  const int64_t left = ended_.front()->record.ended_ms + limits_.keep.count() - unix_now_ms();
  return std::chrono::milliseconds(std::clamp<int64_t>(left, 1, 60'000));
}

Result<JobQueue::Entries::iterator> JobQueue::find(std::string_view id, std::string_view owner) {
  evict();
  const auto it = entries_.find(id);
  if (it == entries_.end() || it->second->record.owner != owner || it->second->forgotten) return not_found(id);
  return it;
}

JobStatus JobQueue::status_of(const Entry& entry) const {
  JobStatus status{entry.record, entry.progress, 0};
  const auto at = std::find_if(pending_.begin(), pending_.end(), [&](const auto& p) { return p.get() == &entry; });
  if (at != pending_.end()) status.position = static_cast<std::size_t>(at - pending_.begin()) + 1;
  return status;
}

uint64_t JobQueue::input_bytes() const {
  uint64_t sum = bytes_being_added_;
  const auto add = [&](const Entry& entry) {
    for (const JobFile& file : entry.record.inputs) sum += file.n_bytes;
  };
  for (const auto& entry : pending_) add(*entry);
  if (running_) add(*running_);
  return sum;
}

Result<JobStatus> JobQueue::submit(const NewJob& job) {
  uint64_t n_bytes = 0;
  for (const JobInput& input : job.inputs) n_bytes += input.bytes.size();
  auto entry = std::make_shared<Entry>();
  JobRecord& record = entry->record;
  record.id = random_id();
  record.kind = job.kind;
  record.owner = job.owner;
  record.warnings = job.warnings;
  record.created_ms = unix_now_ms();
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return busy("draining", "the server is shutting down");
    if (pending_.size() + n_being_added_ >= limits_.max_pending)
      return busy("queue_full", fmt::format("{} jobs wait already", limits_.max_pending));
    if (input_bytes() + n_bytes > limits_.max_input_bytes)
      return busy("queue_full", "the sounds of the jobs that wait take all the room there is for them");
    n_being_added_ += 1;
    bytes_being_added_ += n_bytes;
  }
  const Result<void> added = store_->add(record, job.request, job.inputs);
  const std::lock_guard lock(mutex_);
  n_being_added_ -= 1;
  bytes_being_added_ -= n_bytes;
  TRY(added);
  entry->number = n_entries_++;
  entries_.emplace(record.id, entry);
  pending_.push_back(entry);
  work_.notify_one();
  return status_of(*entry);
}

Result<JobStatus> JobQueue::status(std::string_view id, std::string_view owner) {
  const std::lock_guard lock(mutex_);
  TRY_ASSIGN(const auto it, find(id, owner));
  return status_of(*it->second);
}

Result<JobStatus> JobQueue::wait(std::string_view id, std::string_view owner, std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  TRY_ASSIGN(const auto it, find(id, owner));
  const std::shared_ptr<Entry> entry = it->second;
  changed_.wait_for(lock, limit, [&] { return has_ended(entry->record.state); });
  return status_of(*entry);
}

std::vector<JobStatus> JobQueue::list(std::string_view owner) {
  const std::lock_guard lock(mutex_);
  evict();
  std::vector<const Entry*> visible;
  for (const auto& [id, entry] : entries_)
    if (entry->record.owner == owner && !entry->forgotten) visible.push_back(entry.get());
  std::sort(visible.begin(), visible.end(), [](const Entry* a, const Entry* b) { return a->number < b->number; });
  std::vector<JobStatus> all;
  for (const Entry* entry : visible) all.push_back(status_of(*entry));
  return all;
}

Result<std::vector<BlobFile>> JobQueue::results(std::string_view id, std::string_view owner) {
  const std::lock_guard lock(mutex_);
  TRY_ASSIGN(const auto it, find(id, owner));
  const JobRecord& record = it->second->record;
  if (record.state != JobState::kDone) {
    Error error(ErrorCode::kNotFound, "Result not ready", "id");
    error.reason = "job_not_done";
    return error;
  }
  std::vector<BlobFile> files;
  for (std::size_t i = 0; i < record.results.size(); ++i) {
    TRY_ASSIGN(BlobFile file, store_->open_result(record, i));
    files.push_back(std::move(file));
  }
  return files;
}

Result<JobStatus> JobQueue::cancel(std::string_view id, std::string_view owner) {
  const std::lock_guard lock(mutex_);
  TRY_ASSIGN(const auto it, find(id, owner));
  const std::shared_ptr<Entry> entry = it->second;
  entry->cancel.cancel();
  if (entry->record.state == JobState::kQueued) {
    std::erase(pending_, entry);
    end(*entry, JobState::kCancelled, {}, {});
    retire(entry);
    changed_.notify_all();
  }
  return status_of(*entry);
}

Result<void> JobQueue::forget(std::string_view id, std::string_view owner) {
  TRY(cancel(id, owner));
  const std::lock_guard lock(mutex_);
  const auto found = find(id, owner);
  if (!found) return {};  // somebody else was faster
  Entry& entry = *(*found)->second;
  entry.forgotten = true;
  if (has_ended(entry.record.state)) drop(*found);
  return {};
}

JobStats JobQueue::stats() {
  const std::lock_guard lock(mutex_);
  evict();
  JobStats stats;
  stats.n_queued = pending_.size();
  stats.n_running = running_ ? 1 : 0;
  stats.n_kept = ended_.size();
  stats.input_bytes = input_bytes();
  for (const auto& entry : ended_) stats.result_bytes += entry->record.result_bytes();
  stats.ended = n_ended_;
  return stats;
}

void JobQueue::stop(std::chrono::milliseconds limit) {
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    stopped_ = true;
    work_.notify_all();
    if (running_ && !changed_.wait_for(lock, limit, [this] { return !running_; })) {
      abandoned_ = !running_->cancel.cancelled();
      running_->cancel.cancel();
    }
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace hocket
