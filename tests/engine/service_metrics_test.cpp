#include "engine/service_metrics.h"

#include <thread>

#include "engine/service_fixture.h"

namespace hocket::testing_engine {
namespace {

uint64_t count_of(const ServiceMetrics& all, RequestOutcome outcome) {
  return all.requests[static_cast<std::size_t>(outcome)];
}

uint64_t n_of(const Histogram& histogram) {
  uint64_t n = 0;
  for (const uint64_t count : histogram.counts()) n += count;
  return n;
}

TEST(HistogramTest, AValueOnABoundBelongsBelowIt) {
  static constexpr double kBounds[] = {1, 2};
  Histogram histogram(kBounds);
  for (const double value : {0.5, 1.0, 1.5, 2.0, 2.5}) histogram.observe(value);
  EXPECT_EQ(histogram.counts(), (std::vector<uint64_t>{2, 2, 1}));
  EXPECT_EQ(histogram.sum(), 7.5);
}

class ServiceMetricsTest : public ServiceTest {};

TEST_F(ServiceMetricsTest, CountsHowRequestsEnd) {
  start_saying("0123456789");
  EXPECT_TRUE(collect(service->chat(ask("Hi"))).done);
  ChatRequest brief = ask("Hi");
  brief.params.max_tokens = 4;
  const Collected second = collect(service->chat(brief));
  EXPECT_TRUE(second.done);
  EmbeddingRequest embedding;
  embedding.inputs.emplace_back(std::string("abc"));
  ASSERT_TRUE(service->embed(embedding, CancelToken()).ok());

  const ServiceMetrics all = service->metrics();
  EXPECT_EQ(count_of(all, RequestOutcome::kStop), 1u);
  EXPECT_EQ(count_of(all, RequestOutcome::kLength), 1u);
  EXPECT_EQ(count_of(all, RequestOutcome::kEmbedding), 1u);
  // The second chat found its prompt.
  EXPECT_EQ(all.prompt_tokens_cached, second.usage.prompt_tokens);
  EXPECT_GT(all.prompt_tokens_evaluated, second.usage.prompt_tokens);
  EXPECT_EQ(all.completion_tokens, 11u + 4u);  // with the end token of the first
  EXPECT_EQ(n_of(all.total_s), 3u);
  EXPECT_EQ(n_of(all.ttft_s), 2u);
  EXPECT_EQ(n_of(all.token_s), 2u);
  EXPECT_EQ(all.n_running + all.n_queued, 0u);
}

TEST_F(ServiceMetricsTest, CountsWhatWaitsIsCancelledOrRefused) {
  options.n_parallel = 1;
  options.max_queue = 1;
  gate.close();
  start_saying("one");
  auto running = service->chat(ask("Hi"));
  gate.wait_for_visitor();
  ChatRequest named = ask("Hi");
  named.request_id = "b";
  auto queued = service->chat(named);
  ASSERT_TRUE(running.ok() && queued.ok());
  EXPECT_FALSE(service->chat(ask("Hi")).ok());
  EXPECT_EQ(service->metrics().n_running, 1u);
  EXPECT_EQ(service->metrics().n_queued, 1u);
  ASSERT_TRUE(service->cancel("b").ok());
  gate.open();
  EXPECT_TRUE(collect(std::move(running)).done);
  const ServiceMetrics all = service->metrics();
  EXPECT_EQ(count_of(all, RequestOutcome::kRefused), 1u);
  EXPECT_EQ(count_of(all, RequestOutcome::kCancelled), 1u);
  EXPECT_EQ(count_of(all, RequestOutcome::kStop), 1u);
  EXPECT_EQ(n_of(all.total_s), 1u);
}

}  // namespace
}  // namespace hocket::testing_engine
