// tests/jobs/job_queue_fixture.h: a queue whose runner does what the job's request says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include "jobs/job_queue.h"
#include "support/temp_folder.h"

namespace hocket::test {

using std::chrono::milliseconds;

// Only a test that fails waits so long.
inline constexpr milliseconds kSoon{20'000};

inline std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

inline std::string text_of(const std::vector<std::byte>& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

template <class Condition>
bool eventually(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + kSoon;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

// Requests: "echo X" → X and the input "sound"; "hold" waits for release() or its cancel; "fail"; "throw"; "big N";
// "drain": until release() the program is about to end.
class QueueTest : public testing::Test {
 protected:
  ~QueueTest() override { release(); }

  JobRunner runner() {
    return [this](const RunningJob& job) { return run(job); };
  }
  std::unique_ptr<JobQueue> open(JobQueueOptions options = {}) {
    auto queue = JobQueue::open(options, runner());
    if (!queue) {
      ADD_FAILURE() << queue.error().message;
      throw std::runtime_error("no queue");
    }
    return std::move(*queue);
  }
  std::unique_ptr<JobQueue> open(const std::filesystem::path& folder) { return open(JobQueueOptions{folder, {}}); }

  static std::string submit(JobQueue& queue, const std::string& request, const std::string& owner = "") {
    const auto job = queue.submit({"test", owner, request, {}, {}});
    EXPECT_TRUE(job.ok()) << (job.ok() ? "" : job.error().message);
    return job ? job->record.id : "";
  }
  static JobState state(JobQueue& queue, const std::string& id) {
    const auto job = queue.status(id, "");
    EXPECT_TRUE(job.ok());
    return job ? job->record.state : JobState::kFailed;
  }
  static JobState end_of(JobQueue& queue, const std::string& id) {
    const auto job = queue.wait(id, "", kSoon);
    EXPECT_TRUE(job.ok() && has_ended(job->record.state));
    return job ? job->record.state : JobState::kQueued;
  }
  static std::string result(JobQueue& queue, const std::string& id, std::size_t i = 0) {
    auto files = queue.results(id, "");
    EXPECT_TRUE(files.ok()) << files.error().message;
    if (!files || files->size() <= i) return "(none)";
    return text_of(*(*files)[i].read_rest());
  }
  std::string start_hold(JobQueue& queue) {
    const std::string id = submit(queue, "hold");
    EXPECT_TRUE(eventually([&] { return state(queue, id) == JobState::kRunning && holding_; }));
    return id;
  }
  void release() { released_ = true; }

  // The folder as a kill at this moment leaves it.
  static void copy_as_killed(const std::filesystem::path& from, const std::filesystem::path& to) {
    std::filesystem::create_directories(to);
    for (const auto& file : std::filesystem::directory_iterator(from))
      std::filesystem::copy_file(file.path(), to / file.path().filename(),
                                 std::filesystem::copy_options::overwrite_existing);
  }

  std::vector<std::string> ran_;  // requests in the order in which they were run; read it when nothing runs

 private:
  Result<std::vector<JobOutput>> run(const RunningJob& job) {
    const std::string& request = job.request();
    ran_.push_back(request);
    if (request == "fail") return Error(ErrorCode::kInvalid, "wrong", "field");
    if (request == "throw") throw std::runtime_error("thrown");
    if (request == "drain" && !released_) {
      Error error(ErrorCode::kBusy, "the program ends");
      error.reason = "draining";
      return error;
    }
    if (request == "hold") {
      job.progress("hold", 1, 4);
      holding_ = true;
      while (!released_ && !job.cancel().cancelled()) std::this_thread::sleep_for(milliseconds(1));
      holding_ = false;
      if (job.cancel().cancelled()) return Error(ErrorCode::kCancelled, "cancelled");
      return std::vector<JobOutput>{{"held", "text/plain", bytes_of("held")}};
    }
    if (request.starts_with("big "))
      return std::vector<JobOutput>{{"big", "text/plain", bytes_of(std::string(std::stoul(request.substr(4)), 'x'))}};
    std::vector<JobOutput> outputs{{"text", "text/plain", bytes_of(request.substr(request.find(' ') + 1))}};
    TRY_ASSIGN(const auto sound, job.input("sound"));
    if (sound) outputs.push_back({"sound", "audio/wav", *sound});
    return outputs;
  }

  std::atomic<bool> released_{false}, holding_{false};
};

}  // namespace hocket::test
