#include "jobs/job.h"

namespace hocket {

std::string_view job_state_name(JobState state) {
  switch (state) {
    case JobState::kQueued:
      return "queued";
    case JobState::kRunning:
      return "running";
    case JobState::kDone:
      return "done";
    case JobState::kFailed:
      return "failed";
    case JobState::kCancelled:
      return "cancelled";
    case JobState::kInterrupted:
      return "interrupted";
  }
  return {};
}

bool has_ended(JobState state) {
  return state != JobState::kQueued && state != JobState::kRunning;
}

uint64_t JobRecord::result_bytes() const {
  uint64_t sum = 0;
  for (const JobFile& file : results) sum += file.n_bytes;
  return sum;
}

}  // namespace hocket
