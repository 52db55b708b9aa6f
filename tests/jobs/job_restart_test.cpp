#include <fstream>

#include "jobs/job_queue_fixture.h"

namespace hocket::test {
namespace {

namespace fs = std::filesystem;

class JobRestartTest : public QueueTest {
 protected:
  TempFolder folder_;
  fs::path at(const std::string& name) const { return folder_.path() / name; }
  static std::size_t n_files(const fs::path& folder, const std::string& part) {
    std::size_t n = 0;
    for (const auto& file : fs::directory_iterator(folder)) n += file.path().string().find(part) != std::string::npos;
    return n;
  }
};

TEST_F(JobRestartTest, NothingIsLostInAKill) {
  std::string done, held, waiting;
  const std::vector<std::byte> sound = bytes_of("la la");
  {
    const auto queue = open(at("1"));
    done = submit(*queue, "echo one");
    end_of(*queue, done);
    held = start_hold(*queue);
    waiting = queue->submit({"test", "", "echo two", {{"sound", sound}}, {"careful"}})->record.id;
    copy_as_killed(at("1"), at("2"));
  }
  ran_.clear();
  {
    const auto queue = open(at("2"));
    EXPECT_EQ(result(*queue, done), "one");
    EXPECT_TRUE(eventually([&] { return state(*queue, held) == JobState::kRunning; }));
    EXPECT_EQ(queue->status(waiting, "")->position, 1U);
    EXPECT_EQ(queue->status(waiting, "")->record.warnings, (std::vector<std::string>{"careful"}));
    EXPECT_TRUE(eventually([&] { return !queue->status(held, "")->progress.stage.empty(); }));
    copy_as_killed(at("2"), at("3"));
    release();
    EXPECT_EQ(end_of(*queue, waiting), JobState::kDone);
    EXPECT_EQ(result(*queue, held), "held");
    EXPECT_EQ(result(*queue, waiting, 1), "la la");
  }
  EXPECT_EQ(ran_, (std::vector<std::string>{"hold", "echo two"}));
  ran_.clear();
  {
    const auto queue = open(at("3"));
    EXPECT_EQ(state(*queue, held), JobState::kInterrupted);
    EXPECT_TRUE(queue->status(held, "")->record.error.has_value());
    EXPECT_EQ(end_of(*queue, waiting), JobState::kDone);
  }
  EXPECT_EQ(ran_, (std::vector<std::string>{"echo two"}));
  const auto queue = open(at("3"));
  EXPECT_EQ(state(*queue, held), JobState::kInterrupted);
  EXPECT_EQ(result(*queue, waiting), "two");
}

TEST_F(JobRestartTest, AStopInGoodOrderIsNoStart) {
  std::string held;
  {
    const auto queue = open(at("jobs"));
    held = start_hold(*queue);
  }
  for (int i = 0; i < 3; ++i) {
    const auto queue = open(at("jobs"));
    EXPECT_TRUE(eventually([&] { return state(*queue, held) == JobState::kRunning; })) << i;
    queue->stop(milliseconds(0));
    EXPECT_EQ(queue->submit({"test", "", "echo", {}, {}}).error().reason, "draining");
  }
  const auto queue = open(at("jobs"));
  release();
  EXPECT_EQ(end_of(*queue, held), JobState::kDone);
}

TEST_F(JobRestartTest, WhatCannotRunAtTheEndRunsAfterIt) {
  std::string id;
  {
    const auto queue = open(at("jobs"));
    id = submit(*queue, "drain");
    EXPECT_TRUE(eventually([&] { return state(*queue, id) == JobState::kQueued && queue->stats().n_queued == 0; }));
  }
  release();
  const auto queue = open(at("jobs"));
  EXPECT_EQ(end_of(*queue, id), JobState::kDone);
}

TEST_F(JobRestartTest, AStopWaitsForTheJobThatRuns) {
  const auto queue = open(at("jobs"));
  const std::string held = start_hold(*queue), waiting = submit(*queue, "echo x");
  std::thread later([this] { release(); });
  queue->stop(kSoon);
  later.join();
  EXPECT_EQ(state(*queue, held), JobState::kDone);
  EXPECT_EQ(state(*queue, waiting), JobState::kQueued);
}

TEST_F(JobRestartTest, ACancelledJobIsNotRunAgain) {
  const auto queue = open(at("1"));
  start_hold(*queue);
  const std::string waiting = submit(*queue, "echo x");
  EXPECT_TRUE(queue->cancel(waiting, "").ok());
  copy_as_killed(at("1"), at("2"));
  const auto again = open(at("2"));
  EXPECT_EQ(state(*again, waiting), JobState::kCancelled);
}

TEST_F(JobRestartTest, LostFilesAreFailures) {
  std::string done, waiting;
  const std::vector<std::byte> sound = bytes_of("la la");
  {
    const auto queue = open(at("1"));
    done = submit(*queue, "echo one");
    end_of(*queue, done);
    start_hold(*queue);
    waiting = queue->submit({"test", "", "echo two", {{"sound", sound}}, {}})->record.id;
    copy_as_killed(at("1"), at("2"));
  }
  EXPECT_TRUE(fs::remove(at("2") / (done + ".out0")));
  std::ofstream(at("2") / (waiting + ".in0")) << "short";
  fs::resize_file(at("2") / (waiting + ".in0"), 3);
  release();
  for (int i = 0; i < 2; ++i) {  // also after the next start
    const auto queue = open(at("2"));
    EXPECT_EQ(state(*queue, done), JobState::kFailed);
    EXPECT_EQ(queue->status(done, "")->record.error->code, ErrorCode::kIo);
    EXPECT_EQ(state(*queue, waiting), JobState::kFailed);
    EXPECT_EQ(n_files(at("2"), ".in"), 0U);
  }
}

TEST_F(JobRestartTest, ALostResultIsAnErrorOfItsReader) {
  const auto queue = open(at("jobs"));
  const std::string id = submit(*queue, "echo one");
  end_of(*queue, id);
  EXPECT_TRUE(fs::remove(at("jobs") / (id + ".out0")));
  EXPECT_EQ(queue->results(id, "").error().code, ErrorCode::kIo);
  const std::string next = submit(*queue, "echo two");
  EXPECT_EQ(end_of(*queue, next), JobState::kDone);
}

TEST_F(JobRestartTest, RemovesWhatNobodyNamesAndNothingElse) {
  fs::create_directories(at("jobs"));
  const std::string stray = "0123456789abcdef0123456789abcdef.out0";
  for (const std::string& name : {stray, std::string("song.mp3"), std::string("abc.in0")})
    std::ofstream(at("jobs") / name) << "x";
  const auto queue = open(at("jobs"));
  EXPECT_FALSE(fs::exists(at("jobs") / stray));
  EXPECT_TRUE(fs::exists(at("jobs") / "song.mp3"));
  EXPECT_TRUE(fs::exists(at("jobs") / "abc.in0"));
  const std::string id = submit(*queue, "echo one");
  end_of(*queue, id);
  EXPECT_EQ(fs::status(at("jobs") / (id + ".out0")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_TRUE(queue->forget(id, "").ok());
  EXPECT_EQ(n_files(at("jobs"), ".out"), 0U);
}

TEST_F(JobRestartTest, ADamagedIndexIsNamed) {
  fs::create_directories(at("jobs"));
  std::ofstream(at("jobs") / "jobs.db") << std::string(5000, 'x');
  const auto queue = JobQueue::open({at("jobs"), {}}, runner());
  ASSERT_FALSE(queue.ok());
  EXPECT_EQ(queue.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(queue.error().param, (at("jobs") / "jobs.db").string());
}

TEST_F(JobRestartTest, AFolderIsOfOneQueueAtATime) {
  {
    const auto queue = open(at("jobs"));
    const auto second = JobQueue::open({at("jobs"), {}}, runner());
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, ErrorCode::kBusy);
  }
  EXPECT_TRUE(JobQueue::open({at("jobs"), {}}, runner()).ok());
}

TEST_F(JobRestartTest, AFolderThatCannotBeIsNamed) {
  std::ofstream(at("file")) << "x";
  const auto queue = JobQueue::open({at("file") / "jobs", {}}, runner());
  ASSERT_FALSE(queue.ok());
  EXPECT_EQ(queue.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace hocket::test
