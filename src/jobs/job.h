// jobs/job.h: work that outlives the request that asked for it: what is known of it while it waits, runs and has ended.
//
// Threads  plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hocket {

enum class JobState {
  kQueued,
  kRunning,
  kDone,
  kFailed,
  kCancelled,
  kInterrupted,  // the program ended twice while it ran
};
inline constexpr std::size_t kJobStates = 6;
std::string_view job_state_name(JobState state);  // "queued", …
bool has_ended(JobState state);

// A file of a job: one of its inputs or one of its results.
struct JobFile {
  std::string name;
  std::string media_type;
  uint64_t n_bytes = 0;
};

// What a job is given, and what it makes.
struct JobInput {
  std::string name;
  std::span<const std::byte> bytes;  // borrowed for the call
};
struct JobOutput {
  std::string name, media_type;
  std::vector<std::byte> bytes;
};

struct JobProgress {
  std::string stage;
  std::size_t step = 0;         // done
  std::size_t steps = 0;        // of this stage; 0: unknown
  std::optional<double> eta_s;  // until this stage ends, by its pace so far
};

// What stays of a job when the program ends.
struct JobRecord {
  std::string id;     // 32 hexadecimal digits that nobody can guess
  std::string owner;  // only this owner sees it
  std::string kind;
  JobState state = JobState::kQueued;
  int n_starts = 0;
  std::optional<Error> error;                            // of a job that failed
  std::vector<std::string> warnings;                     // what was accepted and does nothing
  int64_t created_ms = 0, started_ms = 0, ended_ms = 0;  // Unix time; 0: not yet
  std::vector<JobFile> inputs, results;

  uint64_t result_bytes() const;
};

struct JobStatus {
  JobRecord record;
  JobProgress progress;      // while it runs
  std::size_t position = 0;  // in the queue, from 1; 0: it does not wait
};

}  // namespace hocket
