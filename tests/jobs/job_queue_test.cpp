#include "jobs/job_queue.h"

#include "jobs/job_queue_fixture.h"

namespace hocket::test {
namespace {

class JobQueueTest : public QueueTest {};

TEST_F(JobQueueTest, RunsJobsInOrderAndKeepsWhatTheyMade) {
  const auto queue = open();
  const std::string held = start_hold(*queue);
  const std::string first = submit(*queue, "echo one"), second = submit(*queue, "echo two");
  EXPECT_EQ(queue->status(held, "")->position, 0U);
  EXPECT_EQ(queue->status(first, "")->position, 1U);
  EXPECT_EQ(queue->status(second, "")->position, 2U);
  EXPECT_EQ(queue->results(first, "").error().reason, "job_not_done");
  release();
  EXPECT_EQ(end_of(*queue, second), JobState::kDone);
  EXPECT_EQ(ran_, (std::vector<std::string>{"hold", "echo one", "echo two"}));
  EXPECT_EQ(result(*queue, held), "held");
  EXPECT_EQ(result(*queue, first), "one");
  EXPECT_EQ(result(*queue, first), "one");  // as often as one likes
  const auto job = *queue->status(second, "");
  EXPECT_EQ(job.record.results[0].media_type, "text/plain");
  EXPECT_EQ(job.record.result_bytes(), 3U);
  EXPECT_GT(job.record.created_ms, 0);
  EXPECT_LE(job.record.created_ms, job.record.started_ms);
  EXPECT_LE(job.record.started_ms, job.record.ended_ms);
  std::vector<std::string> ids;
  for (const JobStatus& status : queue->list("")) ids.push_back(status.record.id);
  EXPECT_EQ(ids, (std::vector<std::string>{held, first, second}));
}

TEST_F(JobQueueTest, TellsHowFarAJobIs) {
  const auto queue = open();
  const std::string id = start_hold(*queue);
  const JobProgress progress = queue->status(id, "")->progress;
  EXPECT_EQ(progress.stage, "hold");
  EXPECT_EQ(progress.step, 1U);
  EXPECT_EQ(progress.steps, 4U);
  ASSERT_TRUE(progress.eta_s.has_value());
  EXPECT_GE(*progress.eta_s, 0);
  const auto waited = queue->wait(id, "", milliseconds(1));
  EXPECT_EQ(waited->record.state, JobState::kRunning);
}

TEST_F(JobQueueTest, GivesInputsToTheRunner) {
  const auto queue = open();
  const std::vector<std::byte> sound = bytes_of("la la");
  const auto job = queue->submit({"test", "", "echo x", {{"other", {}}, {"sound", sound}}, {"careful"}});
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(end_of(*queue, job->record.id), JobState::kDone);
  EXPECT_EQ(result(*queue, job->record.id, 1), "la la");
  EXPECT_EQ(queue->status(job->record.id, "")->record.warnings, (std::vector<std::string>{"careful"}));
  EXPECT_TRUE(queue->status(job->record.id, "")->record.inputs.empty());
}

TEST_F(JobQueueTest, AFailureEndsItsJobOnly) {
  const auto queue = open();
  const std::string failed = submit(*queue, "fail"), threw = submit(*queue, "throw"), fine = submit(*queue, "echo x");
  EXPECT_EQ(end_of(*queue, fine), JobState::kDone);
  const auto job = *queue->status(failed, "");
  EXPECT_EQ(job.record.state, JobState::kFailed);
  EXPECT_EQ(job.record.error->code, ErrorCode::kInvalid);
  EXPECT_EQ(job.record.error->param, "field");
  EXPECT_EQ(queue->status(threw, "")->record.error->code, ErrorCode::kInternal);
  EXPECT_FALSE(queue->results(failed, "").ok());
}

TEST_F(JobQueueTest, RefusesMoreThanItHolds) {
  JobQueueOptions options;
  options.limits.max_pending = 2;
  options.limits.max_input_bytes = 10;
  const auto queue = open(options);
  start_hold(*queue);
  submit(*queue, "echo 1");
  const std::vector<std::byte> large(11), small(10);
  EXPECT_EQ(queue->submit({"test", "", "echo", {{"sound", large}}, {}}).error().reason, "queue_full");
  EXPECT_TRUE(queue->submit({"test", "", "echo", {{"sound", small}}, {}}).ok());
  const auto refused = queue->submit({"test", "", "echo 3", {}, {}});
  EXPECT_EQ(refused.error().code, ErrorCode::kBusy);
  EXPECT_EQ(refused.error().reason, "queue_full");
  release();
  const std::string last = queue->list("").back().record.id;
  EXPECT_EQ(end_of(*queue, last), JobState::kDone);
  EXPECT_TRUE(queue->submit({"test", "", "echo 4", {}, {}}).ok());
}

TEST_F(JobQueueTest, CancelsInEveryState) {
  const auto queue = open();
  const std::string held = start_hold(*queue), waiting = submit(*queue, "echo 1"), last = submit(*queue, "echo 2");
  EXPECT_EQ(queue->cancel(waiting, "")->record.state, JobState::kCancelled);
  EXPECT_EQ(queue->status(last, "")->position, 1U);
  EXPECT_EQ(queue->cancel(held, "")->record.state, JobState::kRunning);
  EXPECT_EQ(end_of(*queue, held), JobState::kCancelled);
  EXPECT_EQ(end_of(*queue, last), JobState::kDone);
  EXPECT_EQ(queue->cancel(last, "")->record.state, JobState::kDone);
  EXPECT_EQ(result(*queue, last), "2");
  EXPECT_EQ(queue->cancel(held, "")->record.state, JobState::kCancelled);
  EXPECT_EQ(ran_, (std::vector<std::string>{"hold", "echo 2"}));
  EXPECT_EQ(queue->cancel("nobody", "").error().reason, "job_not_found");
}

TEST_F(JobQueueTest, CountsWhatWaitsRunsAndHasEnded) {
  const auto queue = open();
  const std::string held = start_hold(*queue);
  const std::vector<std::byte> sound(10);
  const std::string waiting = queue->submit({"other", "", "echo 123", {{"sound", sound}}, {}})->record.id;
  const std::string cancelled = submit(*queue, "echo 2"), failed = submit(*queue, "fail");
  EXPECT_TRUE(queue->cancel(cancelled, "").ok());
  JobStats stats = queue->stats();
  EXPECT_EQ(stats.n_queued, 2U);
  EXPECT_EQ(stats.n_running, 1U);
  EXPECT_EQ(stats.n_kept, 1U);
  EXPECT_EQ(stats.input_bytes, 10U);
  EXPECT_EQ(stats.result_bytes, 0U);

  release();
  EXPECT_EQ(end_of(*queue, failed), JobState::kFailed);
  EXPECT_TRUE(queue->forget(waiting, "").ok());
  stats = queue->stats();
  EXPECT_EQ(stats.n_queued, 0U);
  EXPECT_EQ(stats.n_kept, 3U);  // what is forgotten still counts below
  EXPECT_EQ(stats.input_bytes, 0U);
  const auto n = [&](const std::string& kind, JobState state) {
    return stats.ended.at(kind).n[static_cast<std::size_t>(state)];
  };
  EXPECT_EQ(n("other", JobState::kDone), 1U);
  EXPECT_EQ(n("test", JobState::kDone), 1U);  // the one that was held
  EXPECT_EQ(n("test", JobState::kCancelled), 1U);
  EXPECT_EQ(n("test", JobState::kFailed), 1U);
  EXPECT_GE(stats.ended.at("test").run_s, 0);
  const uint64_t n_held = queue->status(held, "")->record.result_bytes();
  EXPECT_EQ(stats.result_bytes, n_held);
}

TEST_F(JobQueueTest, ShowsJobsToTheirOwnerOnly) {
  const auto queue = open();
  const std::string id = submit(*queue, "echo x", "ada");
  EXPECT_TRUE(queue->wait(id, "ada", kSoon).ok());
  for (const char* other : {"", "bob"}) {
    EXPECT_EQ(queue->status(id, other).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(queue->results(id, other).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(queue->cancel(id, other).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(queue->forget(id, other).error().code, ErrorCode::kNotFound);
    EXPECT_TRUE(queue->list(other).empty());
  }
  EXPECT_EQ(queue->list("ada").size(), 1U);
}

TEST_F(JobQueueTest, ForgetsAJobInEveryState) {
  const auto queue = open();
  const std::string held = start_hold(*queue), waiting = submit(*queue, "echo 1"), last = submit(*queue, "echo 2");
  EXPECT_TRUE(queue->forget(waiting, "").ok());
  EXPECT_TRUE(queue->forget(held, "").ok());
  EXPECT_EQ(queue->status(held, "").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(end_of(*queue, last), JobState::kDone);
  auto files = queue->results(last, "");
  ASSERT_TRUE(files.ok());
  EXPECT_TRUE(queue->forget(last, "").ok());
  EXPECT_FALSE(queue->forget(last, "").ok());
  EXPECT_EQ(text_of(*(*files)[0].read_rest()), "2");  // who reads it already still gets it
  EXPECT_TRUE(queue->list("").empty());
}

TEST_F(JobQueueTest, ForgetsTheOldestResultsFirst) {
  JobQueueOptions options;
  options.limits.max_result_bytes = 100;
  const auto queue = open(options);
  const std::string a = submit(*queue, "big 40"), b = submit(*queue, "big 40"), c = submit(*queue, "big 40");
  EXPECT_EQ(end_of(*queue, c), JobState::kDone);
  EXPECT_FALSE(queue->status(a, "").ok());
  EXPECT_EQ(result(*queue, b).size(), 40U);
  const std::string whole = submit(*queue, "big 100");
  EXPECT_EQ(end_of(*queue, whole), JobState::kDone);
  EXPECT_EQ(queue->list("").size(), 1U);
  const std::string larger = submit(*queue, "big 101");
  EXPECT_EQ(end_of(*queue, larger), JobState::kFailed);
  EXPECT_EQ(queue->status(larger, "")->record.error->code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(state(*queue, whole), JobState::kDone);
}

TEST_F(JobQueueTest, ForgetsByNumberAndByAge) {
  JobQueueOptions options;
  options.limits.max_ended = 2;
  {
    const auto queue = open(options);
    const std::string a = submit(*queue, "echo 1"), b = submit(*queue, "fail"), c = submit(*queue, "echo 3");
    end_of(*queue, c);
    EXPECT_FALSE(queue->status(a, "").ok());
    EXPECT_TRUE(queue->status(b, "").ok());
  }
  options.limits.keep = milliseconds(1);
  const auto queue = open(options);
  submit(*queue, "echo 1");
  EXPECT_TRUE(eventually([&] { return queue->list("").empty(); }));
}

TEST_F(JobQueueTest, ServesManyAtATime) {
  JobQueueOptions options;
  options.limits.max_pending = 1000;
  const auto queue = open(options);
  std::atomic<int> n_done{0}, n_cancelled{0}, n_wrong{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c)
    clients.emplace_back([&, c] {
      const std::string owner = std::to_string(c);
      for (int i = 0; i < 10; ++i) {
        const auto job = queue->submit({"test", owner, "echo " + owner, {}, {}});
        if (!job) return void(++n_wrong);
        if (i % 3 == 0 && !queue->cancel(job->record.id, owner)) ++n_wrong;
        const auto ended = queue->wait(job->record.id, owner, kSoon);
        if (!ended) return void(++n_wrong);
        if (ended->record.state == JobState::kDone) {
          auto files = queue->results(job->record.id, owner);
          if (!files || text_of(*(*files)[0].read_rest()) != owner) ++n_wrong;
          ++n_done;
        } else if (ended->record.state == JobState::kCancelled) {
          ++n_cancelled;
        } else {
          ++n_wrong;
        }
        if (i % 2 == 0 && !queue->forget(job->record.id, owner)) ++n_wrong;
      }
      if (queue->list(owner).size() != 5) ++n_wrong;
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(n_wrong, 0);
  EXPECT_EQ(n_done + n_cancelled, 40);
  EXPECT_GE(n_done, 24);
}

}  // namespace
}  // namespace hocket::test
