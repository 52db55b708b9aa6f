// Requests that name a session, over the fake model: its logits depend on the steps that every token went through, so
// that a state of another shape changes the text.
#include <filesystem>
#include <fstream>

#include "engine/service_fixture.h"
#include "support/temp_folder.h"

namespace hocket::testing_engine {
namespace {

class SessionTest : public ServiceTest {
 protected:
  void SetUp() override {
    runner_options.n_cells = 4096;
    runner_options.n_seqs = 30;
    script.peak = 0;  // noise only: the text is a hash of the state
    options.sessions.folder = folder.path().string();
    start();
  }
  void restart() {
    service.reset();
    start();
    runner->fake_memory().cuts_anywhere = cuts_anywhere;
  }
  void be_recurrent() {
    cuts_anywhere = false;
    runner->fake_memory().cuts_anywhere = false;
  }
  static CompletionRequest prompt(const std::string& text, const std::string& session = "s") {
    CompletionRequest request = completion(text);
    request.params.max_tokens = 12;
    request.params.temperature = 0.0f;
    request.params.logprobs = true;
    request.serving.session_id = session;
    return request;
  }
  Collected ask_for(const CompletionRequest& request) {
    Collected got = collect(service->complete(request));
    EXPECT_FALSE(got.error) << got.error->message;
    return got;
  }
  // As somebody who never asked for anything before.
  Collected cold(CompletionRequest request) {
    request.user = "nobody" + std::to_string(++n_nobodies_);
    request.serving.session_id = "";
    Collected got = ask_for(request);
    EXPECT_EQ(got.usage.cached_tokens, 0u);
    return got;
  }
  static void expect_equal(const Collected& a, const Collected& b) {
    ASSERT_EQ(a.only().logprobs.size(), b.only().logprobs.size());
    for (std::size_t i = 0; i < a.only().logprobs.size(); ++i) {
      EXPECT_EQ(a.only().logprobs[i].token.id, b.only().logprobs[i].token.id);
      EXPECT_EQ(a.only().logprobs[i].token.logprob, b.only().logprobs[i].token.logprob);
    }
  }
  static const SessionReport& session(const Collected& got) {
    static const SessionReport none;
    EXPECT_TRUE(got.end.details->session.has_value());
    return got.end.details->session ? *got.end.details->session : none;
  }
  TempFolder folder;
  bool cuts_anywhere = true;
  int n_nobodies_ = 0;
};

TEST_F(SessionTest, AReplyTellsThatItsSessionIsOnDisk) {
  const Collected got = ask_for(prompt(std::string(100, 'a')));
  EXPECT_EQ(session(got).id, "s");
  EXPECT_EQ(session(got).stored, "disk");
  EXPECT_EQ(session(got).reason, "");
  EXPECT_GT(session(got).n_bytes, 100u);
  EXPECT_FALSE(got.end.details->from_session);
  const auto list = service->sessions().list("");
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].n_tokens, 111u);  // the last of 12 tokens was not evaluated
  EXPECT_FALSE(ask_for(prompt(std::string(100, 'a'), "")).end.details->session.has_value());
}

TEST_F(SessionTest, AStrictPromptContinuesAsAColdRunAfterARestart) {
  const std::string history(150, 'a');
  const CompletionRequest second = prompt(history + " and a following question");
  const Collected reference = cold(second);
  ask_for(prompt(history));
  restart();
  const Collected warm = ask_for(second);
  EXPECT_EQ(warm.usage.cached_tokens, 128u);
  EXPECT_EQ(warm.end.details->cache_status, CacheStatus::kPrefix);
  EXPECT_TRUE(warm.end.details->from_session);
  EXPECT_TRUE(warm.end.details->strict);
  expect_equal(warm, reference);
  EXPECT_EQ(service->sessions().stats().n_restored, 1u);
}

TEST_F(SessionTest, TheSamePromptNeedsNoStepAfterARestart) {
  const CompletionRequest request = prompt(std::string(100, 'b'));
  const Collected first = ask_for(request);
  restart();
  const Collected again = ask_for(request);
  EXPECT_EQ(again.usage.cached_tokens, 100u);
  EXPECT_EQ(again.end.details->cache_status, CacheStatus::kExactPrompt);
  expect_equal(again, first);
  for (const std::size_t n : runner->steps()) EXPECT_EQ(n, 1u);
  // It is remembered in the lanes from then on.
  const Collected third = ask_for(request);
  EXPECT_FALSE(third.end.details->from_session);
  expect_equal(third, first);
}

TEST_F(SessionTest, AWholePromptIsTakenHoweverMuchTheLanesHave) {
  const std::string shared(64, 'p');
  const Collected first = ask_for(prompt(shared + "one"));
  restart();
  ask_for(prompt(shared + "two", ""));
  const Collected again = ask_for(prompt(shared + "one"));
  EXPECT_EQ(again.usage.cached_tokens, 67u);
  EXPECT_TRUE(again.end.details->from_session);
  expect_equal(again, first);
  // A few tokens more than the lanes have are no reason to restore.
  restart();
  ask_for(prompt(shared + "two", ""));
  CompletionRequest next = prompt(shared + "one more");
  next.serving.reuse_generated_state = true;
  EXPECT_FALSE(ask_for(next).end.details->from_session);
}

TEST_F(SessionTest, AnswersAreContinuedWhereThatIsAllowed) {
  script.peak = 20;
  script.next = [](std::span<const TokenId> history) { return static_cast<TokenId>('a' + history.size() % 26); };
  restart();
  CompletionRequest first = prompt(std::string(100, 'k'));
  const Collected said = ask_for(first);
  restart();
  CompletionRequest second = prompt(std::string(100, 'k') + said.only().content + "!");
  second.serving.reuse_generated_state = true;
  const Collected reused = ask_for(second);
  EXPECT_EQ(reused.usage.cached_tokens, 111u);
  EXPECT_EQ(reused.end.details->cache_status, CacheStatus::kGeneratedPrefix);
  EXPECT_EQ(reused.end.details->generated_cached_tokens, 11u);
  EXPECT_FALSE(reused.end.details->strict);
  // Nothing of that is for those who want a cold run's rows.
  restart();
  second.serving.reuse_generated_state = false;
  const Collected strict = ask_for(second);
  EXPECT_EQ(strict.usage.cached_tokens, 64u);
  expect_equal(strict, cold(second));
}

TEST_F(SessionTest, ARecurrentModelReturnsToItsStates) {
  be_recurrent();
  const std::string history(150, 'a');
  const CompletionRequest first = prompt(history), second = prompt(history + " and a following question");
  const Collected first_cold = cold(first), second_cold = cold(second);
  ask_for(first);
  EXPECT_EQ(service->sessions().list("").at(0).n_states, 3u);
  restart();
  const Collected exact = ask_for(first);
  EXPECT_EQ(exact.usage.cached_tokens, 150u);
  EXPECT_TRUE(exact.end.details->from_session);
  expect_equal(exact, first_cold);
  // The whole prompt was there, so that its last chunk was not passed again: that state remained.
  restart();
  const Collected warm = ask_for(second);
  EXPECT_EQ(warm.usage.cached_tokens, 128u);
  EXPECT_TRUE(warm.end.details->from_session);
  expect_equal(warm, second_cold);
}

TEST_F(SessionTest, AWindowIsLikeARecurrentModel) {
  const std::string history(150, 'w');
  const CompletionRequest second = prompt(history + " and more");
  const Collected reference = cold(second);
  runner->fake_memory().window = 32;
  ask_for(prompt(history));
  EXPECT_EQ(service->sessions().list("").at(0).n_states, 3u);
  restart();
  runner->fake_memory().window = 32;
  const Collected warm = ask_for(second);
  EXPECT_EQ(warm.usage.cached_tokens, 128u);
  expect_equal(warm, reference);
}

TEST_F(SessionTest, ForksGoTheirOwnWays) {
  const std::string history(150, 'f');
  ask_for(prompt(history, "a"));
  ASSERT_TRUE(service->sessions().fork("", "a", "b").ok());
  restart();
  for (const char* id : {"a", "b"}) {
    const CompletionRequest next = prompt(history + "on with " + id, id);
    const Collected got = ask_for(next);
    EXPECT_EQ(got.usage.cached_tokens, 128u);
    expect_equal(got, cold(next));
  }
  EXPECT_EQ(service->sessions().list("").size(), 2u);
}

TEST_F(SessionTest, ASessionIsItsTenantsOnly) {
  CompletionRequest request = prompt(std::string(100, 't'));
  request.user = "alice";
  ask_for(request);
  restart();
  request.user = "bob";
  EXPECT_EQ(ask_for(request).usage.cached_tokens, 0u);
  restart();
  request.user = "alice";
  EXPECT_EQ(ask_for(request).usage.cached_tokens, 100u);
}

TEST_F(SessionTest, ACacheThatIsNotWantedDropsTheSession) {
  CompletionRequest request = prompt(std::string(100, 'm'));
  ask_for(request);
  request.serving.cache_prompt = false;
  const Collected got = ask_for(request);
  EXPECT_EQ(got.usage.cached_tokens, 0u);
  EXPECT_EQ(session(got).stored, "skipped");
  EXPECT_EQ(session(got).reason, "cache_prompt");
  EXPECT_TRUE(service->sessions().list("").empty());
}

TEST_F(SessionTest, WhatDoesNotFitIsTold) {
  options.sessions.most_disk_bytes = 1000;
  restart();
  const Collected got = ask_for(prompt(std::string(100, 'o')));
  EXPECT_EQ(session(got).stored, "skipped");
  EXPECT_EQ(session(got).reason, "over_budget");
  // What the lanes remember is still there.
  EXPECT_EQ(ask_for(prompt(std::string(100, 'o'))).usage.cached_tokens, 100u);
}

TEST_F(SessionTest, MemoryAloneKeepsSessionsToo) {
  options.sessions.folder = "";
  restart();
  const CompletionRequest request = prompt(std::string(100, 'r'));
  EXPECT_EQ(session(ask_for(request)).stored, "ram");
  ASSERT_TRUE(service->clear_cache().ok());
  const Collected again = ask_for(request);
  EXPECT_TRUE(again.end.details->from_session);
  EXPECT_EQ(again.usage.cached_tokens, 100u);
}

TEST_F(SessionTest, OfSeveralChoicesTheFirstGoesOn) {
  script.peak = 20;
  script.next = [](std::span<const TokenId> history) { return static_cast<TokenId>('a' + history.size() % 26); };
  restart();
  CompletionRequest request = prompt(std::string(100, 'n'));
  request.params.n = 3;
  const Collected said = collect(service->complete(request));
  ASSERT_EQ(said.choices.size(), 3u);
  EXPECT_EQ(session(said).stored, "disk");
  restart();
  CompletionRequest next = prompt(std::string(100, 'n') + said.choices[0].content + "!");
  next.serving.reuse_generated_state = true;
  EXPECT_EQ(ask_for(next).usage.cached_tokens, 111u);
}

TEST_F(SessionTest, AnotherModelsSessionIsRefusedWithTheReason) {
  ask_for(prompt(std::string(100, 'x')));
  service.reset();
  {
    SessionStoreOptions other;
    other.folder = folder.path();
    other.identity = {"another", ""};
    auto store = SessionStore::open(other);
    ASSERT_TRUE(store.ok());
    EXPECT_EQ((*store)->find({"", "s"}, std::vector<TokenId>(50, 'x'), true).reason, "session_model");
  }
  start();
  EXPECT_EQ(ask_for(prompt(std::string(100, 'x'))).usage.cached_tokens, 100u);
}

TEST_F(SessionTest, ADamagedSessionIsAMissWithTheReason) {
  const CompletionRequest request = prompt(std::string(100, 'd'));
  const Collected first = ask_for(request);
  service.reset();
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "blobs")) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(200);
    file.put('\x7f');
  }
  start();
  const Collected again = ask_for(request);
  EXPECT_EQ(again.usage.cached_tokens, 0u);
  EXPECT_EQ(again.end.details->cache_status_reason, "session_damaged");
  expect_equal(again, first);
  EXPECT_EQ(session(again).stored, "disk");
}

TEST_F(SessionTest, SeveralPromptsAreNoConversation) {
  CompletionRequest request = prompt("one");
  request.prompts.emplace_back(std::string("two"));
  const auto refused = service->complete(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().param, "session_id");
}

TEST_F(SessionTest, ACancelledRequestLeavesTheSessionAsItWas) {
  ask_for(prompt(std::string(100, 'c')));
  gate.close();
  CompletionRequest next = prompt(std::string(140, 'c'));
  next.request_id = "next";
  auto reply = service->complete(next);
  ASSERT_TRUE(reply.ok());
  gate.wait_for_visitor();
  ASSERT_TRUE(service->cancel("next").ok());
  gate.open();
  EXPECT_TRUE(collect(**reply).error.has_value());
  EXPECT_EQ(service->sessions().list("").at(0).n_tokens, 111u);
}

TEST_F(SessionTest, DrainingWaitsForSaves) {
  auto reply = service->complete(prompt(std::string(100, 'z')));
  ASSERT_TRUE(reply.ok());
  service->drain(std::chrono::seconds(20));
  EXPECT_EQ(session(collect(**reply)).stored, "disk");
  EXPECT_EQ(service->sessions().stats().n_pending, 0u);
}

}  // namespace
}  // namespace hocket::testing_engine
