#include "compute/crew.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "compute/work_queue.h"

namespace hocket::test {
namespace {

using std::chrono::milliseconds;

// How often each unit was called.
std::vector<int> calls(Crew& crew, int64_t n_units) {
  std::vector<std::atomic<int>> counts(static_cast<std::size_t>(n_units));
  crew.run(n_units, [&](int64_t i) { counts[static_cast<std::size_t>(i)].fetch_add(1); });
  return {counts.begin(), counts.end()};
}

class Crews : public testing::TestWithParam<int> {};

TEST_P(Crews, DoEveryUnitOnce) {
  const auto crew = *Crew::create(GetParam());
  EXPECT_EQ(crew->n_threads(), GetParam());
  for (const int64_t n : {0, 1, 2, 3, 17, 1000})
    for (int round = 0; round < 200; ++round)
      ASSERT_EQ(calls(*crew, n), std::vector<int>(static_cast<std::size_t>(n), 1)) << n << " units";
}

// Results of a job are there when run() returns, whoever made them; what the next job reads may be overwritten then.
TEST_P(Crews, LeaveNothingUnfinished) {
  const auto crew = *Crew::create(GetParam());
  std::vector<int64_t> values(64);
  for (int64_t round = 0; round < 2000; ++round) {
    crew->run(64, [&](int64_t i) { values[static_cast<std::size_t>(i)] = round * i; });
    ASSERT_EQ(std::accumulate(values.begin(), values.end(), int64_t{0}), round * 64 * 63 / 2);
  }
}

TEST_P(Crews, WakeFromSleep) {
  const auto crew = *Crew::create(GetParam());
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(milliseconds(5));  // beyond any spinning
    EXPECT_EQ(calls(*crew, 8), std::vector<int>(8, 1));
  }
  std::this_thread::sleep_for(milliseconds(5));  // and end while they sleep
}

INSTANTIATE_TEST_SUITE_P(Threads, Crews, testing::Values(1, 2, 3, 8));

TEST(Crew, HelpsWithLongUnits) {
  const auto crew = *Crew::create(2);
  std::atomic<int> n_inside{0}, most{0};
  crew->run(2, [&](int64_t) {
    most = std::max(most.load(), n_inside.fetch_add(1) + 1);
    // Until the other one is there, too; in vain only on a machine that gives the helper no time at all.
    for (int i = 0; i < 10'000 && n_inside.load() < 2; ++i) std::this_thread::sleep_for(milliseconds(1));
    most = std::max(most.load(), n_inside.load());
  });
  EXPECT_EQ(most.load(), 2);
}

TEST(WorkQueue, SharesWithTheCrewOfItsThread) {
  const auto crew = *Crew::create(3);
  WorkQueue queue;
  std::vector<std::atomic<int>> counts(100);
  const auto count = [&](int64_t i) { counts[static_cast<std::size_t>(i)].fetch_add(1); };
  EXPECT_EQ(WorkQueue::n_threads(1), 1);
  {
    const Crew::Helped helped(*crew);
    EXPECT_EQ(WorkQueue::n_threads(1), 3);
    EXPECT_EQ(WorkQueue::n_threads(4), 4) << "ggml's threads are there";
    for (const int64_t n_operations : {1, 1 << 24})
      for (int round = 0; round < 100; ++round) queue.run(100, n_operations, 1, count);
  }
  EXPECT_EQ(Crew::current(), nullptr);
  EXPECT_EQ(std::vector<int>(counts.begin(), counts.end()), std::vector<int>(100, 200));
}

TEST(WorkQueue, IsReadyAgainWhenAllThreadsHaveLeft) {
  WorkQueue queue;
  std::vector<std::atomic<int>> counts(50);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back(
          [&] { queue.run(50, 1, 3, [&](int64_t unit) { counts[static_cast<std::size_t>(unit)].fetch_add(1); }); });
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(std::vector<int>(counts.begin(), counts.end()), std::vector<int>(50, 50));
}

}  // namespace
}  // namespace hocket::test
