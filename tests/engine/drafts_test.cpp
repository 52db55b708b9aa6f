// Requests with drafts: the same answers, and the numbers that tell what drafts did.
#include <algorithm>

#include "engine/service_fixture.h"
#include "runtime/speculative/draft_model.h"

namespace hocket::testing_engine {
namespace {

class DraftsTest : public ServiceTest {
 protected:
  DraftsTest() { script.exact = true; }

  // Says the same few words over and over.
  void say_a_refrain() {
    script.next = [](std::span<const TokenId> history) {
      static const std::string kRefrain = "la lo li ";
      return static_cast<TokenId>(static_cast<unsigned char>(kRefrain[history.size() % kRefrain.size()]));
    };
  }
  static CompletionRequest request() {
    CompletionRequest out = completion("Sing");
    out.params.max_tokens = 60;
    out.params.temperature = 0.0f;
    return out;
  }
  // Starts with drafts from a second fake model that knows the same script.
  void start_with_draft_model() {
    draft_vocabulary_ = fake::byte_tokenizer(vocabulary);
    drafting = std::make_unique<Drafting>();
    auto model = std::make_unique<fake::Model>(draft_vocabulary_->size());
    fake::Script draft_script = script;
    draft_script.on_step = [this](std::span<const BatchToken>) { draft_gate_.pass(); };
    RunnerOptions draft_options = runner_options;
    draft_options.n_seqs = 2;
    auto draft = std::make_unique<fake::Runner>(*model, draft_options, draft_script);
    draft_runner_ = draft.get();
    for (SeqId lane = 0; lane < 2; ++lane)
      drafting->sources.push_back(
          std::make_unique<DraftModel>(*draft, DraftModelOptions{0.1, draft_vocabulary_->size(), {}}, lane));
    drafting->model = std::move(model);
    drafting->runner = std::move(draft);
    start();
  }
  void TearDown() override {
    draft_gate_.open();
    ServiceTest::TearDown();
  }

  std::unique_ptr<Tokenizer> draft_vocabulary_;
  fake::Runner* draft_runner_ = nullptr;
  Gate draft_gate_;
};

TEST_F(DraftsTest, LookupGivesTheSameTextInFewerSteps) {
  say_a_refrain();
  start();
  const Collected without = collect(service->complete(request()));
  const std::size_t n_steps = runner->steps().size();
  EXPECT_EQ(without.timings.drafted_tokens, 0u);

  options.drafts.kind = DraftOptions::Kind::kLookup;
  start();
  const Collected with = collect(service->complete(request()));
  EXPECT_EQ(with.only().content, without.only().content);
  EXPECT_EQ(with.only().reason, without.only().reason);
  EXPECT_EQ(with.usage.completion_tokens, 60u);
  EXPECT_EQ(with.timings.decode_tokens, 59u);
  EXPECT_GT(with.timings.accepted_tokens, 25u);
  EXPECT_LE(with.timings.accepted_tokens, with.timings.drafted_tokens);
  EXPECT_EQ(runner->steps().size(), n_steps - with.timings.accepted_tokens);
  EXPECT_EQ(service->info().drafts.kind, DraftOptions::Kind::kLookup);
}

TEST_F(DraftsTest, AModelGivesTheSameSampledText) {
  say_a_refrain();
  script.peak = 4;
  start();
  std::vector<Collected> without;
  const auto seeded = [](int64_t seed) {
    CompletionRequest out = request();
    out.params.temperature = 0.8f;
    out.params.seed = seed;
    out.params.logprobs = true;
    out.params.stop = {"lo li"};
    return out;
  };
  for (int64_t seed = 1; seed <= 10; ++seed) without.push_back(collect(service->complete(seeded(seed))));

  start_with_draft_model();
  std::size_t n_accepted = 0;
  for (int64_t seed = 1; seed <= 10; ++seed) {
    const Collected with = collect(service->complete(seeded(seed)));
    const Collected& expected = without[static_cast<std::size_t>(seed - 1)];
    EXPECT_EQ(with.only().content, expected.only().content);
    EXPECT_EQ(with.only().stop_string, expected.only().stop_string);
    ASSERT_EQ(with.only().logprobs.size(), expected.only().logprobs.size());
    for (std::size_t i = 0; i < with.only().logprobs.size(); ++i) {
      EXPECT_EQ(with.only().logprobs[i].token.logprob, expected.only().logprobs[i].token.logprob);
    }
    n_accepted += with.timings.accepted_tokens;
  }
  EXPECT_GT(n_accepted, 20u);
}

TEST_F(DraftsTest, SeveralChoicesGoWithoutDrafts) {
  say_a_refrain();
  options.drafts.kind = DraftOptions::Kind::kLookup;
  start();
  CompletionRequest several = request();
  several.params.n = 2;
  const Collected got = collect(service->complete(several));
  ASSERT_EQ(got.choices.size(), 2u);
  EXPECT_EQ(got.choices[0].content, got.choices[1].content);
  EXPECT_EQ(got.timings.drafted_tokens, 0u);
  // Afterwards a single one has them again, from the prompt that is still there.
  const Collected one = collect(service->complete(request()));
  EXPECT_EQ(one.only().content, got.choices[0].content);
  EXPECT_EQ(one.usage.cached_tokens, 4u);
  EXPECT_GT(one.timings.accepted_tokens, 0u);
}

TEST_F(DraftsTest, SeveralPromptsEachHaveTheirs) {
  say_a_refrain();
  options.drafts.kind = DraftOptions::Kind::kLookup;
  start();
  CompletionRequest two = request();
  two.prompts.emplace_back("Sing again");
  const Collected got = collect(service->complete(two));
  ASSERT_EQ(got.choices.size(), 2u);
  EXPECT_EQ(got.usage.completion_tokens, 120u);
  EXPECT_GT(got.timings.accepted_tokens, 50u);
  CompletionRequest second = request();
  second.prompts = {"Sing again"};
  EXPECT_EQ(collect(service->complete(second)).only().content, got.choices[1].content);
}

TEST_F(DraftsTest, TheStatusCountsDrafts) {
  say_a_refrain();
  options.drafts.kind = DraftOptions::Kind::kLookup;
  int n_drafts = 0;
  script.on_step = [&](std::span<const BatchToken> batch) {
    if (batch.size() > 1 && batch.front().output && ++n_drafts == 3) gate.pass();
  };
  start();
  gate.close();
  auto reply = service->complete(request());
  ASSERT_TRUE(reply.ok());
  gate.wait_for_visitor();
  const auto status = service->status();
  ASSERT_EQ(status.size(), 1u);
  EXPECT_GE(status[0].drafted_tokens, 2u);
  EXPECT_GE(status[0].accepted_tokens, 2u);
  EXPECT_GT(status[0].completion_tokens, status[0].accepted_tokens);
  gate.open();
  EXPECT_TRUE(collect(**reply).done);
}

TEST_F(DraftsTest, TheDraftModelKeepsNothingForAnotherTenant) {
  say_a_refrain();
  start_with_draft_model();
  CompletionRequest asked = completion(std::string(150, 'x'));
  asked.params.max_tokens = 5;
  asked.params.temperature = 0.0f;
  const auto longest_draft_step = [&] {
    const std::size_t n_before = draft_runner_->steps().size();
    EXPECT_FALSE(collect(service->complete(asked)).error);
    const auto steps = draft_runner_->steps();
    return *std::max_element(steps.begin() + static_cast<std::ptrdiff_t>(n_before), steps.end());
  };
  asked.user = "alice";
  EXPECT_EQ(longest_draft_step(), 64u);
  EXPECT_EQ(longest_draft_step(), 23u) << "two chunks of alice's 150 tokens are still there";
  asked.user = "bob";
  EXPECT_EQ(longest_draft_step(), 64u);
}

TEST_F(DraftsTest, CancelledWhileDrafting) {
  say_a_refrain();
  start_with_draft_model();
  draft_gate_.close();
  CompletionRequest asked = request();
  asked.request_id = "slow";
  auto reply = service->complete(asked);
  ASSERT_TRUE(reply.ok());
  draft_gate_.wait_for_visitor();
  ASSERT_TRUE(service->cancel("slow").ok());
  draft_gate_.open();
  const Collected got = collect(**reply);
  ASSERT_TRUE(got.error);
  EXPECT_EQ(got.error->code, ErrorCode::kCancelled);
  const Collected after = collect(service->complete(request()));
  ASSERT_FALSE(after.error);
  EXPECT_EQ(after.usage.completion_tokens, 60u);
}

}  // namespace
}  // namespace hocket::testing_engine
