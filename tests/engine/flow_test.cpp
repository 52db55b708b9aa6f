// Acknowledgements, pauses and who is held up by them.
#include "engine/flow_control.h"

#include <thread>

#include "engine/service_fixture.h"

namespace hocket::testing_engine {
namespace {

TEST(FlowControl, TheWindowOpensWithAcknowledgements) {
  FlowControl flow(2, std::chrono::hours(1));
  EXPECT_TRUE(flow.may_go_on());
  EXPECT_EQ(flow.next_chunk(), 1u);
  EXPECT_TRUE(flow.may_go_on());
  EXPECT_EQ(flow.next_chunk(), 2u);
  EXPECT_FALSE(flow.may_go_on());
  EXPECT_EQ(flow.next_chunk(), 3u);
  EXPECT_TRUE(flow.may_send(2));
  EXPECT_FALSE(flow.may_send(3));
  EXPECT_EQ(flow.acknowledge(4).error().param, "sequence");
  ASSERT_TRUE(flow.acknowledge(1).ok());
  EXPECT_FALSE(flow.may_go_on());
  EXPECT_TRUE(flow.may_send(3));
  ASSERT_TRUE(flow.acknowledge(3).ok());
  ASSERT_TRUE(flow.acknowledge(1).ok());  // old news
  EXPECT_TRUE(flow.may_go_on());
  EXPECT_EQ(flow.waits().n, 1u);
}

TEST(FlowControl, PausesAndTime) {
  FlowControl flow(1, std::chrono::milliseconds(20));
  flow.pause();
  EXPECT_FALSE(flow.may_go_on());
  flow.next_chunk();
  std::this_thread::sleep_for(milliseconds(40));
  EXPECT_TRUE(flow.check().ok()) << "a pause is the client's wish";
  flow.resume();
  EXPECT_TRUE(flow.check().ok());
  std::this_thread::sleep_for(milliseconds(40));
  EXPECT_EQ(flow.check().error().reason, "flow_timeout");
  FlowControl none;
  EXPECT_EQ(none.next_chunk(), 0u);
  EXPECT_EQ(none.acknowledge(0).error().code, ErrorCode::kInvalid);
}

class FlowTest : public ServiceTest {
 protected:
  FlowTest() {
    runner_options.n_cells = 4096;
    script.next = [](std::span<const TokenId>) { return TokenId{'x'}; };
  }
  std::unique_ptr<Reply> submit(const std::string& id, int64_t n_tokens, std::size_t window) {
    CompletionRequest request = completion("Hi");
    request.request_id = id;
    request.params.max_tokens = n_tokens;
    request.serving.flow_window = window;
    auto reply = service->complete(std::move(request));
    EXPECT_TRUE(reply.ok()) << reply.error().message;
    return std::move(*reply);
  }
  RequestStatus status_of(const std::string& id) const {
    for (const RequestStatus& status : service->status())
      if (status.request_id == id) return status;
    return {};
  }
  bool eventually(const std::function<bool()>& condition) {
    const auto until = Clock::now() + std::chrono::seconds(20);
    while (!condition())
      if (Clock::now() > until) return false;
    return true;
  }
};

TEST_F(FlowTest, NoMoreThanTheWindowIsSentAndOthersGoOn) {
  start();
  auto slow = submit("slow", 10, 2);
  EXPECT_TRUE(eventually([&] { return status_of("slow").phase == RequestPhase::kPaused; }));
  EXPECT_EQ(status_of("slow").sequence, 2u);
  EXPECT_EQ(status_of("slow").completion_tokens, 2u);
  EXPECT_EQ(collect(*submit("other", 50, 0)).usage.completion_tokens, 50u);
  EXPECT_EQ(status_of("slow").completion_tokens, 2u);
  std::string text;
  while (true) {
    const auto event = slow->next(std::chrono::seconds(20));
    ASSERT_TRUE(event.ok()) << event.error().message;
    ASSERT_TRUE(event->has_value());
    if (const auto* delta = std::get_if<DeltaEvent>(&**event)) {
      text += delta->deltas.at(0).text;
      EXPECT_EQ(delta->sequence, text.size());
      ASSERT_TRUE(service->acknowledge("slow", delta->sequence).ok());
    }
    if (const auto* done = std::get_if<ReplyDone>(&**event)) {
      EXPECT_GE(done->details->n_flow_waits, 1u);
      EXPECT_GT(done->details->flow_wait_ms, 0.0);
      break;
    }
  }
  EXPECT_EQ(text, std::string(10, 'x'));
  EXPECT_TRUE(service->acknowledge("slow", 10).ok()) << "late, but not wrong";
  EXPECT_EQ(service->acknowledge("slow", 11).error().param, "sequence");
  EXPECT_EQ(service->acknowledge("nobody", 1).error().code, ErrorCode::kNotFound);
}

TEST_F(FlowTest, SeveralChoicesStayWithinTheWindow) {
  start();
  CompletionRequest request = completion("Hi");
  request.request_id = "three";
  request.params.max_tokens = 3;
  request.params.n = 3;
  request.serving.flow_window = 1;
  auto reply = service->complete(std::move(request));
  ASSERT_TRUE(reply.ok());
  uint64_t last = 0;
  while (true) {
    const auto event = (*reply)->next(milliseconds(500));
    ASSERT_TRUE(event.ok()) << event.error().message;
    ASSERT_TRUE(event->has_value());
    if (const auto* delta = std::get_if<DeltaEvent>(&**event)) {
      EXPECT_EQ(delta->sequence, ++last);
      // The next chunk exists already, but is not given before this one is acknowledged.
      const auto early = (*reply)->next(milliseconds(5));
      ASSERT_TRUE(early.ok());
      EXPECT_FALSE(early->has_value() && std::holds_alternative<DeltaEvent>(**early));
      ASSERT_TRUE(service->acknowledge("three", last).ok());
      if (early->has_value() && std::holds_alternative<ReplyDone>(**early)) break;
    }
    if (std::holds_alternative<ReplyDone>(**event)) break;
  }
  EXPECT_EQ(last, 9u);
}

TEST_F(FlowTest, ASilentClientIsGivenUp) {
  options.flow_timeout_ms = 60;
  start();
  auto reply = submit("a", 10, 1);
  const Collected got = collect(*reply);
  ASSERT_TRUE(got.error);
  EXPECT_EQ(got.error->code, ErrorCode::kCancelled);
  EXPECT_EQ(got.error->reason, "flow_timeout");
  EXPECT_TRUE(eventually([&] { return service->status().empty(); }));
}

TEST_F(FlowTest, PauseHoldsAndResumeContinues) {
  gate.close();
  start();
  auto paused = submit("p", 40, 0);
  gate.wait_for_visitor();
  ASSERT_TRUE(service->pause("p").ok());
  gate.open();
  EXPECT_TRUE(eventually([&] { return status_of("p").phase == RequestPhase::kPaused; }));
  EXPECT_EQ(collect(*submit("other", 30, 0)).usage.completion_tokens, 30u);
  EXPECT_LE(status_of("p").completion_tokens, 1u);
  ASSERT_TRUE(service->resume("p").ok());
  EXPECT_EQ(collect(*paused).only().content, std::string(40, 'x'));
  EXPECT_EQ(service->pause("p").error().code, ErrorCode::kNotFound);
}

TEST_F(FlowTest, APausedRequestCanBeCancelled) {
  gate.close();
  start();
  auto paused = submit("p", 40, 0);
  gate.wait_for_visitor();
  ASSERT_TRUE(service->pause("p").ok());
  gate.open();
  EXPECT_TRUE(eventually([&] { return status_of("p").phase == RequestPhase::kPaused; }));
  ASSERT_TRUE(service->cancel("p").ok());
  EXPECT_EQ(collect(*paused).error->code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace hocket::testing_engine
