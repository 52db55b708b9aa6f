// Requests beside each other: order, cancelling, limits in time, draining, failures in the generation thread.
#include <new>
#include <stdexcept>
#include <thread>

#include "engine/service_fixture.h"

namespace hocket::testing_engine {
namespace {

class ServiceQueueTest : public ServiceTest {
 protected:
  ServiceQueueTest() { options.n_parallel = 1; }
  static ChatRequest named(const std::string& id) {
    ChatRequest request = ask("Hi");
    request.request_id = id;
    return request;
  }
  std::unique_ptr<Reply> submit(const std::string& id) {
    auto reply = service->chat(named(id));
    EXPECT_TRUE(reply.ok()) << reply.error().message;
    return reply ? std::move(*reply) : nullptr;
  }
  std::vector<std::string> ids() const {
    std::vector<std::string> out;
    for (const RequestStatus& status : service->status()) out.push_back(status.request_id);
    return out;
  }
};

TEST_F(ServiceQueueTest, RunsInOrderAndReportsStatus) {
  gate.close();
  start_saying("one");
  auto first = submit("a");
  gate.wait_for_visitor();
  auto second = submit("b");
  auto third = submit("c");
  EXPECT_EQ(ids(), (std::vector<std::string>{"a", "b", "c"}));
  const auto status = service->status();
  EXPECT_EQ(status[0].phase, RequestPhase::kPrefill);
  EXPECT_EQ(status[1].phase, RequestPhase::kQueued);
  EXPECT_GT(status[1].prompt_total, 0u);
  gate.open();
  const Collected c = collect(*third);
  EXPECT_TRUE(c.done);
  // The third has ended, so the others have, and in this order.
  const Collected a = collect(*first);
  const Collected b = collect(*second);
  EXPECT_TRUE(a.done && b.done);
  EXPECT_TRUE(service->status().empty());
}

TEST_F(ServiceQueueTest, CancelsAQueuedRequestWithoutWaiting) {
  gate.close();
  start_saying("one");
  auto first = submit("a");
  gate.wait_for_visitor();
  auto second = submit("b");
  EXPECT_TRUE(service->cancel("b").ok());
  const Collected got = collect(*second);
  ASSERT_TRUE(got.error);
  EXPECT_EQ(got.error->code, ErrorCode::kCancelled);
  EXPECT_EQ(ids(), std::vector<std::string>{"a"});
  gate.open();
  EXPECT_TRUE(collect(*first).done);
}

TEST_F(ServiceQueueTest, CancelsTheRunningRequestWithinAStep) {
  script.next = [](std::span<const TokenId>) { return TokenId{'x'}; };
  gate.close();
  start();
  auto reply = submit("a");
  gate.wait_for_visitor();
  EXPECT_TRUE(service->cancel("a").ok());
  gate.open();
  const Collected got = collect(*reply);
  ASSERT_TRUE(got.error);
  EXPECT_EQ(got.error->code, ErrorCode::kCancelled);
  EXPECT_LE(runner->steps().size(), 1u);
  EXPECT_TRUE(collect(service->complete([] {
                CompletionRequest request = completion("abc");
                request.params.max_tokens = 2;
                return request;
              }()))
                  .done);
}

TEST_F(ServiceQueueTest, CancelOfUnknownOrEmptyIds) {
  start_saying("one");
  EXPECT_EQ(service->cancel("nobody").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(service->cancel("").error().code, ErrorCode::kInvalid);
}

TEST_F(ServiceQueueTest, ADroppedReplyCancelsItsRequest) {
  script.next = [](std::span<const TokenId>) { return TokenId{'x'}; };
  runner_options.n_ctx = 100'000;
  start();
  submit("a").reset();
  // The next one is not held up by an answer of 100000 tokens.
  ChatRequest request = named("b");
  request.params.max_tokens = 2;
  EXPECT_TRUE(collect(service->chat(request)).done);
}

TEST_F(ServiceQueueTest, AnIdIsUsedOnceAtATime) {
  gate.close();
  start_saying("one");
  auto first = submit("a");
  const auto second = service->chat(named("a"));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().param, "request_id");
  gate.open();
  EXPECT_TRUE(collect(*first).done);
  EXPECT_TRUE(collect(*submit("a")).done);
}

TEST_F(ServiceQueueTest, AFullQueueIsBusy) {
  options.max_queue = 1;
  gate.close();
  start_saying("one");
  auto first = submit("a");
  gate.wait_for_visitor();
  auto second = submit("b");
  const auto third = service->chat(named("c"));
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code, ErrorCode::kBusy);
  EXPECT_EQ(third.error().reason, "queue_full");
  gate.open();
  EXPECT_TRUE(collect(*second).done);
}

TEST_F(ServiceQueueTest, WaitingTooLongIsATimeout) {
  options.queue_timeout_ms = 1000;  // enough for the first to start, on a busy machine too
  gate.close();
  start_saying("one");
  auto first = submit("a");
  gate.wait_for_visitor();
  auto second = submit("b");
  const Collected got = collect(*second);
  ASSERT_TRUE(got.error);
  EXPECT_EQ(got.error->code, ErrorCode::kTimeout);
  EXPECT_EQ(got.error->reason, "queue_timeout");
  gate.open();
  EXPECT_TRUE(collect(*first).done);
}

TEST_F(ServiceQueueTest, RunningTooLongIsATimeout) {
  options.request_timeout_ms = 50;
  script.next = [](std::span<const TokenId>) { return TokenId{'x'}; };
  script.on_step = [](std::span<const BatchToken>) { std::this_thread::sleep_for(milliseconds(5)); };
  start();
  const Collected got = collect(*submit("a"));
  ASSERT_TRUE(got.error);
  EXPECT_EQ(got.error->code, ErrorCode::kTimeout);
  EXPECT_EQ(got.error->reason, "request_timeout");
}

TEST_F(ServiceQueueTest, ExceptionsEndTheRequestAndNotTheThread) {
  int n_left = 2;
  script.on_step = [&](std::span<const BatchToken>) {
    if (n_left == 2) {
      --n_left;
      throw std::bad_alloc();
    }
    if (n_left == 1) {
      --n_left;
      throw std::runtime_error("kernel on fire");
    }
  };
  start_saying("fine");
  const Collected first = collect(*submit("a"));
  ASSERT_TRUE(first.error);
  EXPECT_EQ(first.error->code, ErrorCode::kOutOfMemory);
  const Collected second = collect(*submit("b"));
  ASSERT_TRUE(second.error);
  EXPECT_EQ(second.error->code, ErrorCode::kInternal);
  EXPECT_NE(second.error->message.find("kernel on fire"), std::string::npos);
  EXPECT_EQ(collect(*submit("c")).only().content, "fine");
}

TEST_F(ServiceQueueTest, DrainLetsRunningRequestsEnd) {
  gate.close();
  start_saying("one");
  auto reply = submit("a");
  gate.wait_for_visitor();
  std::thread drain([&] { service->drain(std::chrono::seconds(20)); });
  // Refusing begins at once; wait until it is visible.
  while (service->chat(named("b")).ok()) std::this_thread::yield();
  const auto refused = service->chat(named("c"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kBusy);
  EXPECT_EQ(refused.error().reason, "draining");
  gate.open();
  drain.join();
  EXPECT_TRUE(collect(*reply).done);
}

TEST_F(ServiceQueueTest, DrainCancelsWhatDoesNotEnd) {
  script.next = [](std::span<const TokenId>) { return TokenId{'x'}; };
  runner_options.n_ctx = 1'000'000;
  start();
  auto reply = submit("a");
  auto waiting = submit("b");
  service->drain(milliseconds(30));
  for (Reply* ended : {reply.get(), waiting.get()}) {
    const Collected got = collect(*ended);
    ASSERT_TRUE(got.error);
    EXPECT_EQ(got.error->code, ErrorCode::kCancelled);
    EXPECT_EQ(got.error->reason, "draining");  // clients may come back, unlike those who cancelled
  }
}

TEST_F(ServiceQueueTest, AReplyMayOutliveTheService) {
  gate.close();
  start_saying("one");
  auto running = submit("a");
  gate.wait_for_visitor();
  auto queued = submit("b");
  std::thread end([&] { service.reset(); });
  const Collected got = collect(*queued);
  gate.open();
  end.join();
  ASSERT_TRUE(got.error);
  EXPECT_EQ(got.error->code, ErrorCode::kCancelled);
  const Collected other = collect(*running);
  EXPECT_TRUE(other.error || other.done);
}

TEST_F(ServiceQueueTest, ASlowReaderHoldsUpNobody) {
  start_saying(std::string(200, 'y'));
  auto slow = submit("a");
  EXPECT_TRUE(collect(*submit("b")).done);  // nobody has read from the first
  EXPECT_EQ(collect(*slow).only().content, std::string(200, 'y'));
}

TEST_F(ServiceQueueTest, ManyClientsAtOnce) {
  options.max_queue = 100;
  start_saying("hello");
  std::vector<std::thread> clients;
  std::atomic<int> n_good{0};
  for (int i = 0; i < 32; ++i) {
    clients.emplace_back([&, i] {
      const Collected got = collect(service->chat(ask("Hi " + std::to_string(i))));
      if (got.done && got.choices.size() == 1 && got.choices[0].content == "hello") ++n_good;
      service->status();
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(n_good, 32);
}

}  // namespace
}  // namespace hocket::testing_engine
