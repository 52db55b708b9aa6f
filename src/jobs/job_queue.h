// jobs/job_queue.h: jobs that run one after another on a thread of their own, and stay to be asked about.
//
//   TRY_ASSIGN(auto queue, JobQueue::open({.folder = dir}, runner));
//   TRY_ASSIGN(JobStatus job, queue->submit({.kind = "synth", .request = json}));
//   TRY_ASSIGN(job, queue->wait(job.record.id, owner, std::chrono::seconds(60)));
//   TRY_ASSIGN(auto files, queue->results(job.record.id, owner));
//
// With a folder, jobs that wait and jobs that have ended survive the program. One that ran when the program was killed
// is run once more; when that ends the same way it is "interrupted". A stop in good order does not count. Without a
// folder everything is gone with the queue.
//
// Owns     the store, the thread.
// Threads  every method from any thread. The runner is called by the queue's thread only.
// Errors   kNotFound (reason "job_not_found") for an id that does not exist, was forgotten or is another owner's;
//          submit(): kBusy (reason "queue_full") beyond the limits, (reason "draining") after stop(); kIo of the store.
//          What the runner throws or returns ends its job, never the queue; an error with reason "draining" leaves it
//          to the next queue of this folder.
// Cost     a change waits for the disk; asking does not.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/cancel.h"
#include "jobs/blob_file.h"
#include "jobs/job.h"
#include "jobs/job_store.h"

namespace hocket {

struct JobLimits {
  std::size_t max_pending = 64;           // jobs that wait
  uint64_t max_input_bytes = 1ULL << 30;  // of the jobs that wait or run
  // Ended jobs: the oldest are forgotten first. A job whose own results are larger has failed.
  uint64_t max_result_bytes = 1ULL << 30;
  std::size_t max_ended = 1024;
  std::chrono::milliseconds keep{3'600'000};
};

struct JobQueueOptions {
  std::filesystem::path folder;  // "": nothing survives
  JobLimits limits;
};

struct NewJob {
  std::string kind, owner, request;
  std::vector<JobInput> inputs;
  std::vector<std::string> warnings;
};

// A job as its runner sees it.
class RunningJob {
 public:
  virtual ~RunningJob() = default;
  virtual const std::string& kind() const = 0;
  virtual const std::string& request() const = 0;
  // nullopt: the job has no such input.
  virtual Result<std::optional<std::vector<std::byte>>> input(std::string_view name) const = 0;
  virtual const CancelToken& cancel() const = 0;
  virtual void progress(std::string_view stage, std::size_t step, std::size_t steps) const = 0;
};
using JobRunner = std::function<Result<std::vector<JobOutput>>(const RunningJob&)>;

// Of a queue, since it was opened.
struct JobStats {
  struct Ended {
    std::array<uint64_t, kJobStates> n{};  // by state
    double run_s = 0;
  };
  std::size_t n_queued = 0, n_running = 0, n_kept = 0;
  uint64_t input_bytes = 0, result_bytes = 0;  // of the jobs that wait or run; of those that have ended
  std::map<std::string, Ended> ended;          // by kind
};

class JobQueue {
 public:
  static Result<std::unique_ptr<JobQueue>> open(const JobQueueOptions& options, JobRunner runner);
  ~JobQueue();  // stop() without waiting for the job that runs

  Result<JobStatus> submit(const NewJob& job);
  Result<JobStatus> status(std::string_view id, std::string_view owner);
  // Until the job has ended or `limit` has passed.
  Result<JobStatus> wait(std::string_view id, std::string_view owner, std::chrono::milliseconds limit);
  std::vector<JobStatus> list(std::string_view owner);
  // kNotFound (reason "job_not_done") of a job that is not done.
  Result<std::vector<BlobFile>> results(std::string_view id, std::string_view owner);
  // A job that waits has ended when this returns, one that runs ends at its next step; others stay as they are.
  Result<JobStatus> cancel(std::string_view id, std::string_view owner);
  // Cancels it if it has not ended, and forgets it.
  Result<void> forget(std::string_view id, std::string_view owner);

  JobStats stats();

  // By one thread. Takes no more jobs and lets the one that runs end for up to `limit`; then it is cancelled, to be run
  // again by the next queue of this folder, as the ones that wait.
  void stop(std::chrono::milliseconds limit);

 private:
  class Running;
  struct Entry {
    uint64_t number = 0;  // in order of submission
    JobRecord record;
    JobProgress progress;
    std::chrono::steady_clock::time_point stage_began{};
    CancelToken cancel;
    bool forgotten = false;
  };
  using Entries = std::map<std::string, std::shared_ptr<Entry>, std::less<>>;

  JobQueue(const JobLimits& limits, JobRunner runner) : limits_(limits), runner_(std::move(runner)) {}
  Result<void> restore();
  void work();
  void run_next(std::unique_lock<std::mutex>& lock);
  void end(Entry& entry, JobState state, std::optional<Error> error, std::span<const JobOutput> outputs);
  void put_back(Entry& entry);
  void retire(const std::shared_ptr<Entry>& entry);
  void evict();
  void drop(Entries::iterator it);
  std::chrono::milliseconds until_next_eviction() const;
  Result<Entries::iterator> find(std::string_view id, std::string_view owner);
  JobStatus status_of(const Entry& entry) const;
  uint64_t input_bytes() const;

  const JobLimits limits_;
  const JobRunner runner_;
  std::unique_ptr<JobStore> store_;

  std::mutex mutex_;
  std::condition_variable work_;     // for the worker
  std::condition_variable changed_;  // for those who wait for a job
  Entries entries_;
  std::deque<std::shared_ptr<Entry>> pending_;
  std::deque<std::shared_ptr<Entry>> ended_;  // the oldest first
  std::shared_ptr<Entry> running_;
  std::map<std::string, JobStats::Ended> n_ended_;  // by kind
  uint64_t n_entries_ = 0;                          // ever
  std::size_t n_being_added_ = 0;
  uint64_t bytes_being_added_ = 0;
  bool stopping_ = false;   // takes no more jobs
  bool stopped_ = false;    // starts no more jobs
  bool abandoned_ = false;  // the running job was cancelled by stop()
  std::thread thread_;
};

}  // namespace hocket
