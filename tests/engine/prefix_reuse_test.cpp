// What is kept of a prompt must give exactly the logits of a cold run. The fake model's logits depend on the steps that
// every token went through, so that inherited state of another shape changes the text.
#include "engine/service_fixture.h"

namespace hocket::testing_engine {
namespace {

class PrefixReuseTest : public ServiceTest {
 protected:
  void SetUp() override {
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
  };
  Answer answer(const CompletionRequest& request) {
    const Collected got = collect(service->complete(request));
    EXPECT_FALSE(got.error) << got.error->message;
    Answer out{got.only().content, {}, got.usage.cached_tokens};
    for (const TokenLogprobs& entry : got.only().logprobs) out.logprobs.push_back(entry.token.logprob);
    return out;
  }
  Answer cold(const CompletionRequest& request) {
    CompletionRequest other = prompt("something else entirely");
    other.user = "nobody";
    answer(other);
    Answer out = answer(request);
    EXPECT_EQ(out.cached, 0u);
    return out;
  }
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
  cold(first);
  const Answer warm = answer(second);
  EXPECT_EQ(warm.cached, 128u);  // two chunks of 64 of the 150 common tokens
  expect_equal(warm, reference);
}

TEST_F(PrefixReuseTest, TheSamePromptNeedsNoStep) {
  const CompletionRequest request = prompt(std::string(100, 'b'));
  const Answer reference = cold(request);
  const std::size_t n_before = runner->steps().size();
  const Answer warm = answer(request);
  EXPECT_EQ(warm.cached, 100u);
  expect_equal(warm, reference);
  for (std::size_t i = n_before; i < runner->steps().size(); ++i) EXPECT_EQ(runner->steps()[i], 1u);
}

TEST_F(PrefixReuseTest, APromptThatEndsAtABorderStillEvaluatesAToken) {
  cold(prompt(std::string(200, 'c')));
  const CompletionRequest shorter = prompt(std::string(128, 'c'));
  const Answer warm = answer(shorter);
  EXPECT_EQ(warm.cached, 64u);
  expect_equal(warm, cold(shorter));
}

TEST_F(PrefixReuseTest, ADifferentBeginningKeepsNothing) {
  cold(prompt(std::string(150, 'd')));
  EXPECT_EQ(answer(prompt("x" + std::string(150, 'd'))).cached, 0u);
}

TEST_F(PrefixReuseTest, GeneratedTokensAreNeverInherited) {
  const CompletionRequest first = prompt(std::string(60, 'e'));
  const Answer said = cold(first);
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
  cold(prompt(history));
  runner->fake_memory().oldest_cut = 140;  // neither 128 nor 64 can be returned to
  const Answer warm = answer(second);
  EXPECT_EQ(warm.cached, 0u);
  expect_equal(warm, reference);
}

TEST_F(PrefixReuseTest, EmbeddingsBetweenDoNotDisturb) {
  const CompletionRequest request = prompt(std::string(150, 'j'));
  const Answer reference = cold(request);
  EmbeddingRequest embedding;
  embedding.inputs.emplace_back(std::string("text"));
  ASSERT_TRUE(service->embed(embedding, CancelToken()).ok());
  const Answer after = answer(request);
  EXPECT_EQ(after.cached, 0u);
  expect_equal(after, reference);
}

}  // namespace
}  // namespace hocket::testing_engine
