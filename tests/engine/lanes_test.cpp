// Requests side by side: they go on together, hold each other up by a step at most, and give the tokens they give
// alone.
#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "engine/service_fixture.h"
#include "support/temp_folder.h"

namespace hocket::testing_engine {
namespace {

class LanesTest : public ServiceTest {
 protected:
  LanesTest() {
    options.n_parallel = 4;
    runner_options.n_cells = 4096;
    runner_options.n_seqs = 24;
  }
  static CompletionRequest asking(const std::string& text, int64_t n_tokens, const std::string& id = "") {
    CompletionRequest request = completion(text);
    request.request_id = id;
    request.params.max_tokens = n_tokens;
    request.params.temperature = 0.0f;
    return request;
  }
  std::unique_ptr<Reply> submit(CompletionRequest request) {
    auto reply = service->complete(std::move(request));
    EXPECT_TRUE(reply.ok()) << reply.error().message;
    return reply ? std::move(*reply) : nullptr;
  }
  // Holds the generation thread before its n-th step.
  void stop_at_step(std::size_t n) {
    script.on_step = [this, n, then = script.on_step](std::span<const BatchToken> batch) {
      if (++n_steps_ == n) gate.close();
      gate.pass();
      if (then) then(batch);
    };
  }
  std::vector<std::string> running() const {
    std::vector<std::string> out;
    for (const RequestStatus& status : service->status())
      if (status.phase != RequestPhase::kQueued) out.push_back(status.request_id);
    return out;
  }

  std::size_t n_steps_ = 0;
};

TEST_F(LanesTest, StreamsProgressAtTheSameTime) {
  script.next = [](std::span<const TokenId>) { return TokenId{'x'}; };
  gate.close();
  start();
  std::vector<std::unique_ptr<Reply>> replies;
  for (const char* id : {"a", "b", "c", "d", "e"}) replies.push_back(submit(asking("Hi", 200, id)));
  gate.open();
  // Each of the first four has text long before any of them ends.
  for (std::size_t i = 0; i < 4; ++i) {
    const auto event = replies[i]->next(std::chrono::seconds(20));
    ASSERT_TRUE(event.ok() && event->has_value());
  }
  for (auto& reply : replies) EXPECT_EQ(collect(*reply).usage.completion_tokens, 200u);
  // 5 prompts of 2 tokens and 199 steps after each first token, four at a time.
  EXPECT_LT(runner->steps().size(), 3u * 200u);
  EXPECT_TRUE(service->status().empty());
}

TEST_F(LanesTest, ALongPromptHoldsUpTheOthersForOneChunkAtMost) {
  script.next = [](std::span<const TokenId>) { return TokenId{'x'}; };
  std::size_t n_without = 0, n_longest = 0, n_chunks = 0;
  script.on_step = [&](std::span<const BatchToken> batch) {
    const bool decodes =
        std::any_of(batch.begin(), batch.end(), [](const BatchToken& token) { return token.id == 'x'; });
    n_chunks += batch.size() > 8 ? 1 : 0;
    n_without = decodes || n_chunks == 0 ? 0 : n_without + 1;
    n_longest = std::max(n_longest, n_without);
  };
  stop_at_step(10);
  start();
  auto talker = submit(asking("Hi", 400));
  gate.wait_for_visitor();
  auto reader = submit(asking(std::string(600, 'p'), 1));
  gate.open();
  EXPECT_EQ(collect(*reader).usage.completion_tokens, 1u);
  EXPECT_EQ(collect(*talker).usage.completion_tokens, 400u);
  EXPECT_GE(n_chunks, 9u);
  EXPECT_LE(n_longest, 1u);
}

TEST_F(LanesTest, CancellingOneLeavesTheOthers) {
  script.next = [](std::span<const TokenId>) { return TokenId{'x'}; };
  stop_at_step(50);
  start();
  auto a = submit(asking("Hi", 300, "a")), b = submit(asking("Hi there", 300, "b")), c = submit(asking("Ho", 900, "c"));
  gate.wait_for_visitor();
  ASSERT_TRUE(service->cancel("c").ok());
  gate.open();
  const Collected cancelled = collect(*c);
  ASSERT_TRUE(cancelled.error);
  EXPECT_EQ(cancelled.error->code, ErrorCode::kCancelled);
  for (Reply* reply : {a.get(), b.get()}) EXPECT_EQ(collect(*reply).only().content, std::string(300, 'x'));
}

TEST_F(LanesTest, TheCacheBoundsHowManyRun) {
  runner_options.n_cells = 1024;
  script.next = [](std::span<const TokenId>) { return TokenId{'x'}; };
  std::vector<std::vector<std::string>> beside_b;
  script.on_step = [&](std::span<const BatchToken>) {
    gate.pass();
    const auto ids = running();
    if (std::find(ids.begin(), ids.end(), "b") != ids.end()) beside_b.push_back(ids);
  };
  gate.close();
  start();
  auto a = submit(asking("Hi", 400, "a"));
  gate.wait_for_visitor();
  auto b = submit(asking("Hi", 700, "b")), c = submit(asking("Hi", 300, "c"));
  gate.open();
  // The small one passes the one that does not fit beside the first.
  EXPECT_TRUE(collect(*c).done);
  EXPECT_TRUE(collect(*a).done);
  EXPECT_EQ(collect(*b).usage.completion_tokens, 700u);
  for (const auto& ids : beside_b) EXPECT_EQ(std::find(ids.begin(), ids.end(), "a"), ids.end());
}

TEST_F(LanesTest, TenantsTakeTurnsInTheQueue) {
  options.n_parallel = 1;
  script.next = [](std::span<const TokenId>) { return TokenId{'x'}; };
  std::vector<TokenId> order;
  script.on_step = [&](std::span<const BatchToken> batch) {
    gate.pass();
    if (batch.front().id != 'x') order.push_back(batch.front().id);
  };
  gate.close();
  start();
  const auto from = [&](const std::string& user, const std::string& text) {
    CompletionRequest request = asking(text, 2);
    request.user = user;
    return submit(request);
  };
  std::vector<std::unique_ptr<Reply>> replies;
  replies.push_back(from("a", "1"));
  gate.wait_for_visitor();
  for (const char* text : {"2", "3"}) replies.push_back(from("a", text));
  replies.push_back(from("b", "4"));
  gate.open();
  for (auto& reply : replies) EXPECT_TRUE(collect(*reply).done);
  EXPECT_EQ(order, (std::vector<TokenId>{'1', '4', '2', '3'}));
}

TEST_F(LanesTest, AnErrorInAStepEndsThoseInIt) {
  script.next = [](std::span<const TokenId>) { return TokenId{'x'}; };
  bool fail = false;
  script.on_step = [&](std::span<const BatchToken> batch) {
    gate.pass();
    if (batch.size() == 2 && std::exchange(fail, false)) throw std::bad_alloc();
  };
  gate.close();
  start();
  fail = true;
  auto a = submit(asking("H", 50)), b = submit(asking("J", 50));
  gate.open();
  for (Reply* reply : {a.get(), b.get()}) {
    const Collected got = collect(*reply);
    ASSERT_TRUE(got.error);
    EXPECT_EQ(got.error->code, ErrorCode::kOutOfMemory);
  }
  EXPECT_EQ(collect(*submit(asking("H", 50))).only().content, std::string(50, 'x'));
}

// ---- the same tokens as alone

struct Trial {
  CompletionRequest request;
  int cancel_after = -1;  // events, -1: never
};

std::vector<Trial> random_trials(std::mt19937& random, std::size_t n) {
  const auto below = [&](std::size_t k) { return static_cast<std::size_t>(random() % k); };
  std::vector<std::string> beginnings;
  for (int i = 0; i < 3; ++i) beginnings.emplace_back(20 + below(150), static_cast<char>('a' + i));
  std::vector<Trial> trials;
  for (std::size_t i = 0; i < n; ++i) {
    Trial trial;
    CompletionRequest& request = trial.request;
    request.request_id = "r" + std::to_string(i);
    request.user = below(4) == 0 ? "other" : "";
    std::string text = beginnings[below(3)].substr(0, 1 + below(200));
    if (below(3) > 0) text += "<|im_end|>";
    if (below(3) > 0) text += std::to_string(i) + std::string(below(90), 'z');
    request.prompts.emplace_back(text);
    if (below(3) == 0) request.serving.session_id = "s" + std::to_string(below(4));
    if (request.serving.session_id.empty() && below(8) == 0) request.prompts.emplace_back("and " + text);
    request.params.max_tokens = static_cast<int64_t>(1 + below(30));
    request.params.n = below(4) == 0 ? static_cast<int>(2 + below(3)) : 1;
    request.params.seed = static_cast<int64_t>(i);
    request.params.temperature = below(2) == 0 ? 0.0f : 1.0f;
    if (below(5) == 0) trial.cancel_after = static_cast<int>(below(20));
    trials.push_back(std::move(trial));
  }
  return trials;
}

struct LanesSetting {
  const char* name;
  bool exact;   // rows do not depend on their steps, so that answers and drafts may be continued
  bool drafts;  // which needs that
  bool cuts;    // false: a memory of recurrent layers
};

class LanesPropertyTest : public LanesTest, public ::testing::WithParamInterface<LanesSetting> {
 protected:
  void restart(std::size_t n_parallel) {
    options.n_parallel = n_parallel;
    service.reset();
    start();
    runner->fake_memory().cuts_anywhere = GetParam().cuts;
  }
  // What clients and operators may do at any moment, until `done`.
  void disturb(std::mt19937& random, std::size_t n_requests, const std::atomic<bool>& done) {
    const auto below = [&](std::size_t n) { return random() % n; };
    const auto session = [&] { return "s" + std::to_string(below(4)); };
    while (!done) {
      switch (below(6)) {
        case 0:
          (void)service->clear_cache();
          break;
        case 1:
          (void)service->sessions().fork(below(4) == 0 ? "other" : "", session(), session());
          break;
        case 2:
          (void)service->sessions().drop({below(4) == 0 ? "other" : "", session()});
          break;
        default: {
          const std::string id = "r" + std::to_string(below(n_requests));
          if (!service->pause(id)) break;
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
          (void)service->resume(id);
        }
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
    }
  }
};

TEST_P(LanesPropertyTest, TokensAreThoseOfARunAlone) {
  script.peak = 0;                  // the text is a hash of what the sequence holds
  script.exact = GetParam().exact;  // else also of how it got there
  options.max_queue = 1000;
  if (GetParam().drafts) options.drafts.kind = DraftOptions::Kind::kLookup;
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<Trial> trials = random_trials(random, 60);

  restart(1);
  std::vector<Collected> alone;
  for (const Trial& trial : trials) {
    CompletionRequest request = trial.request;
    request.user = "cold " + trial.request.request_id;
    request.serving.session_id.clear();
    alone.push_back(collect(service->complete(request)));
    ASSERT_FALSE(alone.back().error) << alone.back().error->message;
    EXPECT_EQ(alone.back().usage.cached_tokens, 0u);
  }

  const TempFolder folder;
  options.sessions.folder = folder.path().string();
  std::vector<Collected> together(trials.size());
  constexpr std::size_t kLives = 3;  // of the server
  for (std::size_t life = 0; life < kLives; ++life) {
    restart(1 + random() % 6);
    std::vector<std::thread> clients;
    std::atomic<bool> done{false};
    std::thread others([&, own = std::mt19937(random())]() mutable { disturb(own, trials.size(), done); });
    for (std::size_t i = life; i < trials.size(); i += kLives) {
      if (random() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
      clients.emplace_back([&, i] {
        auto reply = service->complete(trials[i].request);
        if (!reply) {
          together[i].error = reply.error();
          return;
        }
        for (int k = 0; k < trials[i].cancel_after; ++k)
          if (!(*reply)->next(milliseconds(20)).ok()) break;
        if (trials[i].cancel_after >= 0) (*reply)->cancel();
        if (trials[i].cancel_after < 0) together[i] = collect(**reply);
      });
    }
    for (std::thread& client : clients) client.join();
    done = true;
    others.join();
    // Nothing is left once what is remembered goes, too.
    service->drain(milliseconds(5000));
    ASSERT_TRUE(service->clear_cache().ok());
    EXPECT_EQ(runner->fake_memory().n_free_cells(), runner->fake_memory().n_cells());
  }
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].cancel_after >= 0) continue;
    ASSERT_FALSE(together[i].error) << i << ": " << together[i].error->message;
    ASSERT_EQ(together[i].choices.size(), alone[i].choices.size());
    for (std::size_t c = 0; c < alone[i].choices.size(); ++c)
      EXPECT_EQ(together[i].choices[c].content, alone[i].choices[c].content) << "request " << i << " choice " << c;
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, LanesPropertyTest,
                         ::testing::Values(LanesSetting{"rows_that_depend_on_steps", false, false, true},
                                           LanesSetting{"exact_rows", true, false, true},
                                           LanesSetting{"exact_rows_and_drafts", true, true, true},
                                           LanesSetting{"recurrent", false, false, false},
                                           LanesSetting{"recurrent_and_exact", true, false, false}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace hocket::testing_engine
