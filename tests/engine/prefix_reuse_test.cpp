// What is kept of a prompt must give exactly the logits of a cold run. The fake model's logits depend on the steps that
// every token went through, so that inherited state of another shape changes the text.
#include "engine/service_fixture.h"

namespace hocket::testing_engine {
namespace {

class PrefixReuseTest : public ServiceTest {
 protected:
  void SetUp() override {
    runner_options.n_cells = 4096;
    runner_options.n_seqs = 30;
    script.peak = 0;  // noise only: the text is a hash of the state
    start();
  }
  static CompletionRequest prompt(const std::string& text) {
    CompletionRequest request = completion(text);
    request.params.max_tokens = 12;
    request.params.temperature = 0.0f;
    request.params.logprobs = true;
    return request;
  }
  struct Answer {
    std::string text;
    std::vector<double> logprobs;
    std::size_t cached;
    CacheStatus status;
    std::size_t n_generated;
  };
  Answer answer(const CompletionRequest& request) {
    const Collected got = collect(service->complete(request));
    EXPECT_FALSE(got.error) << got.error->message;
    Answer out{got.only().content,
               {},
               got.usage.cached_tokens,
               got.end.details->cache_status,
               got.end.details->generated_cached_tokens};
    for (const TokenLogprobs& entry : got.only().logprobs) out.logprobs.push_back(entry.token.logprob);
    return out;
  }
  // As a tenant who never asked for anything before.
  Answer cold(CompletionRequest request) {
    request.user = "nobody" + std::to_string(++n_nobodies_);
    Answer out = answer(request);
    EXPECT_EQ(out.cached, 0u);
    return out;
  }
  int n_nobodies_ = 0;
  void expect_equal(const Answer& a, const Answer& b) {
    EXPECT_EQ(a.text, b.text);
    EXPECT_EQ(a.logprobs, b.logprobs);
  }
};

TEST_F(PrefixReuseTest, AContinuedPromptKeepsWholeChunks) {
  const std::string history(150, 'a');
  const CompletionRequest first = prompt(history);
  const CompletionRequest second = prompt(history + " and a following question");
  const Answer reference = cold(second);
  answer(first);
  const Answer warm = answer(second);
  EXPECT_EQ(warm.cached, 128u);  // two chunks of 64 of the 150 common tokens
  expect_equal(warm, reference);
}

TEST_F(PrefixReuseTest, TheSamePromptNeedsNoStep) {
  const CompletionRequest request = prompt(std::string(100, 'b'));
  const Answer reference = answer(request);
  const std::size_t n_before = runner->steps().size();
  const Answer warm = answer(request);
  EXPECT_EQ(warm.cached, 100u);
  expect_equal(warm, reference);
  for (std::size_t i = n_before; i < runner->steps().size(); ++i) EXPECT_EQ(runner->steps()[i], 1u);
}

TEST_F(PrefixReuseTest, APromptThatEndsAtABorderStillEvaluatesAToken) {
  answer(prompt(std::string(200, 'c')));
  const CompletionRequest shorter = prompt(std::string(128, 'c'));
  const Answer warm = answer(shorter);
  EXPECT_EQ(warm.cached, 64u);
  expect_equal(warm, cold(shorter));
}

TEST_F(PrefixReuseTest, ADifferentBeginningKeepsNothing) {
  answer(prompt(std::string(150, 'd')));
  EXPECT_EQ(answer(prompt("x" + std::string(150, 'd'))).cached, 0u);
}

TEST_F(PrefixReuseTest, GeneratedTokensAreNeverInherited) {
  const CompletionRequest first = prompt(std::string(60, 'e'));
  const Answer said = answer(first);
  // The next prompt continues through the answer, past a chunk border.
  const CompletionRequest second = prompt(std::string(60, 'e') + said.text + std::string(40, 'f'));
  const Answer warm = answer(second);
  EXPECT_EQ(warm.cached, 0u);
  expect_equal(warm, cold(second));
}

TEST_F(PrefixReuseTest, TenantsShareNothing) {
  CompletionRequest request = prompt(std::string(150, 'g'));
  request.user = "alice";
  answer(request);
  request.user = "bob";
  EXPECT_EQ(answer(request).cached, 0u);
  EXPECT_EQ(answer(request).cached, 150u);
}

TEST_F(PrefixReuseTest, ManyChoicesAndReuse) {
  CompletionRequest request = prompt(std::string(150, 'h'));
  request.params.n = 3;
  const Collected first = collect(service->complete(request));
  const Collected again = collect(service->complete(request));
  ASSERT_EQ(again.choices.size(), 3u);
  EXPECT_EQ(again.usage.cached_tokens, 150u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(first.choices[i].content, again.choices[i].content);
}

TEST_F(PrefixReuseTest, AWindowThatDroppedTheBorderStartsAgain) {
  const std::string history(150, 'i');
  const CompletionRequest second = prompt(history + "more");
  const Answer reference = cold(second);
  answer(prompt(history));
  runner->fake_memory().oldest_cut = 140;  // neither 128 nor 64 can be returned to
  const Answer warm = answer(second);
  EXPECT_EQ(warm.cached, 0u);
  expect_equal(warm, reference);
}

TEST_F(PrefixReuseTest, SeveralConversationsAreKept) {
  const std::string shared(130, 's');
  std::vector<CompletionRequest> requests;
  for (const char* end : {"one", "two", "three", "four"}) requests.push_back(prompt(shared + end));
  std::vector<Answer> first;
  for (const CompletionRequest& request : requests) first.push_back(answer(request));
  EXPECT_EQ(first[0].status, CacheStatus::kMiss);
  for (std::size_t i = 1; i < first.size(); ++i) {
    EXPECT_EQ(first[i].cached, 128u);
    EXPECT_EQ(first[i].status, CacheStatus::kPrefix);
    expect_equal(first[i], cold(requests[i]));
  }
  const Answer again = answer(requests[2]);
  EXPECT_EQ(again.status, CacheStatus::kExactPrompt);
  expect_equal(again, first[2]);
}

TEST_F(PrefixReuseTest, AnswersAreContinuedWhereThatIsAllowed) {
  script.peak = 20;
  script.next = [](std::span<const TokenId> history) { return static_cast<TokenId>('a' + history.size() % 26); };
  start();
  CompletionRequest first = prompt(std::string(100, 'k'));
  first.serving.reuse_generated_state = true;
  const Answer said = answer(first);
  CompletionRequest second = prompt(std::string(100, 'k') + said.text + "!");
  second.serving.reuse_generated_state = true;
  const Answer reused = answer(second);
  // 12 tokens were said, of which the last was not evaluated.
  EXPECT_EQ(reused.cached, 111u);
  EXPECT_EQ(reused.n_generated, 11u);
  EXPECT_EQ(reused.status, CacheStatus::kGeneratedPrefix);
  // Neither state is that of a cold run, so they are nothing for those who want one.
  CompletionRequest third = prompt(std::string(100, 'k') + said.text + "?");
  for (CompletionRequest* request : {&third, &second}) {
    request->serving.reuse_generated_state = false;
    const Answer strict = answer(*request);
    EXPECT_EQ(strict.cached, 64u);
    EXPECT_EQ(strict.status, CacheStatus::kPrefix);
    expect_equal(strict, cold(*request));
  }
}

TEST_F(PrefixReuseTest, APromptIsContinuedBeyondItsLastChunkWhereThatIsAllowed) {
  answer(prompt(std::string(100, 'l')));
  CompletionRequest second = prompt(std::string(100, 'l') + " and more");
  second.serving.reuse_generated_state = true;
  const Answer got = answer(second);
  EXPECT_EQ(got.cached, 100u);
  EXPECT_EQ(got.status, CacheStatus::kExactPrefix);
}

TEST_F(PrefixReuseTest, ACacheThatIsNotWantedIsNeitherReadNorFilled) {
  CompletionRequest request = prompt(std::string(100, 'm'));
  request.serving.cache_prompt = false;
  EXPECT_EQ(answer(request).status, CacheStatus::kDisabled);
  EXPECT_EQ(service->cache().prefixes.n_entries, 0u);
  request.serving.cache_prompt = true;
  EXPECT_EQ(answer(request).cached, 0u);
  request.serving.cache_prompt = false;
  EXPECT_EQ(answer(request).cached, 0u);
}

TEST_F(PrefixReuseTest, TheReportCountsAndClearingEmpties) {
  const CompletionRequest request = prompt(std::string(100, 'n'));
  answer(request);
  answer(request);
  const CacheReport report = service->cache();
  EXPECT_EQ(report.prefixes.n_entries, 2u);  // the border and the prompt
  EXPECT_EQ(report.prefixes.n_tokens, 100u);
  EXPECT_EQ(report.prefixes.n_found[static_cast<std::size_t>(CacheStatus::kExactPrompt)], 1u);
  ASSERT_TRUE(service->clear_cache().ok());
  EXPECT_EQ(service->cache().prefixes.n_entries, 0u);
  EXPECT_EQ(runner->fake_memory().n_free_cells(), runner->fake_memory().n_cells());
  EXPECT_EQ(answer(request).cached, 0u);
}

TEST_F(PrefixReuseTest, WhatIsKeptMakesWayForWhatRuns) {
  for (char c = 'a'; c < 'i'; ++c) answer(prompt(std::string(400, c)));
  EXPECT_GT(service->cache().prefixes.n_evicted, 0u);
  EXPECT_LE(service->cache().prefixes.n_tokens, 2048u);
  CompletionRequest long_one = prompt(std::string(900, 'o'));
  long_one.params.max_tokens = 100;
  EXPECT_EQ(collect(service->complete(long_one)).usage.completion_tokens, 100u);
}

// Rows depend on nothing but the tokens before them, as with kernels of our own: any state is that of a cold run.
class ExactReuseTest : public PrefixReuseTest {
 protected:
  void SetUp() override {
    script.exact = true;
    PrefixReuseTest::SetUp();
  }
  static CompletionRequest chat(const std::vector<std::string>& messages) {
    std::string text;
    for (const std::string& message : messages) text += message + "<|im_end|>";
    return prompt(text + "assistant:");
  }
};

TEST_F(ExactReuseTest, APromptContinuesFromAnyToken) {
  answer(prompt(std::string(100, 'l')));
  const CompletionRequest second = prompt(std::string(93, 'l') + " and more");
  const Answer warm = answer(second);
  EXPECT_EQ(warm.cached, 93u);
  EXPECT_EQ(warm.status, CacheStatus::kExactPrefix);
  expect_equal(warm, cold(second));
}

TEST_F(ExactReuseTest, AnAnswerIsContinuedByTheNextTurn) {
  script.peak = 20;
  script.next = [](std::span<const TokenId> history) { return static_cast<TokenId>('a' + history.size() % 26); };
  start();
  const Answer said = answer(prompt(std::string(100, 'k')));
  const CompletionRequest second = prompt(std::string(100, 'k') + said.text + "!");
  const Answer warm = answer(second);
  EXPECT_EQ(warm.cached, 111u);  // the last of 12 tokens was not evaluated
  EXPECT_EQ(warm.n_generated, 11u);
  EXPECT_EQ(warm.status, CacheStatus::kGeneratedPrefix);
  expect_equal(warm, cold(second));
  // The state that came of it is as good as any.
  const CompletionRequest third = prompt(std::string(100, 'k') + said.text + "! Yes");
  const Answer on = answer(third);
  EXPECT_EQ(on.cached, 113u);
  expect_equal(on, cold(third));
}

TEST_F(ExactReuseTest, AMemoryThatCannotBeCutContinuesAtTheEndOfAMessage) {
  runner->fake_memory().cuts_anywhere = false;
  const std::string first(90, 'q'), second(40, 'r');
  answer(chat({first}));
  const CompletionRequest next = chat({first, "what was answered, without its thoughts", second});
  const Answer warm = answer(next);
  EXPECT_EQ(warm.cached, 91u);  // with the token that ends it
  expect_equal(warm, cold(next));
  // Borders in the middle of a conversation serve who asks its last question otherwise.
  const CompletionRequest other = chat({first, "what was answered, without its thoughts", "another question"});
  EXPECT_EQ(answer(other).cached, 91u);  // this fake keeps no checkpoints
}

TEST_F(ExactReuseTest, ChunksStayWholeWhereTheMemoryCanBeCut) {
  answer(chat({std::string(30, 's'), std::string(30, 't'), std::string(30, 'u')}));
  EXPECT_EQ(runner->steps().front(), 64u);
}

TEST_F(PrefixReuseTest, EmbeddingsBetweenDoNotDisturb) {
  const CompletionRequest request = prompt(std::string(150, 'j'));
  const Answer reference = answer(request);
  EmbeddingRequest embedding;
  embedding.inputs.emplace_back(std::string("text"));
  ASSERT_TRUE(service->embed(embedding, CancelToken()).ok());
  const Answer after = answer(request);
  EXPECT_EQ(after.cached, 150u);
  expect_equal(after, reference);
}

}  // namespace
}  // namespace hocket::testing_engine
