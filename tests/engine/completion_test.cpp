// Text completion: echo, log-probabilities of the prompt, several prompts, fill-in-the-middle.
#include <cmath>

#include "engine/service_fixture.h"

namespace hocket::testing_engine {
namespace {

class CompletionTest : public ServiceTest {
 protected:
  // Says the byte after the last one.
  void start_counting() {
    script.next = [](std::span<const TokenId> history) { return (history.back() + 1) % 256; };
    start();
  }
};

TEST_F(CompletionTest, ContinuesTheText) {
  start_counting();
  CompletionRequest request = completion("abc");
  request.params.max_tokens = 3;
  const Collected got = collect(service->complete(request));
  EXPECT_EQ(got.only().content, "def");
  EXPECT_EQ(got.usage.prompt_tokens, 3u);
}

TEST_F(CompletionTest, EveryPromptHasItsChoices) {
  start_counting();
  CompletionRequest request = completion("a");
  request.prompts.emplace_back(std::vector<TokenId>{'p', 'q'});
  request.params.n = 2;
  request.params.max_tokens = 2;
  const Collected got = collect(service->complete(request));
  ASSERT_EQ(got.choices.size(), 4u);
  EXPECT_EQ(got.choices[0].content, "bc");
  EXPECT_EQ(got.choices[1].content, "bc");
  EXPECT_EQ(got.choices[2].content, "rs");
  EXPECT_EQ(got.choices[3].content, "rs");
  EXPECT_EQ(got.usage.prompt_tokens, 3u);
  EXPECT_EQ(got.usage.completion_tokens, 8u);
}

TEST_F(CompletionTest, EchoGivesThePromptFirst) {
  start_counting();
  CompletionRequest request = completion("xyz<|im_end|>");
  request.echo = true;
  request.params.max_tokens = 0;
  const Collected got = collect(service->complete(request));
  ASSERT_FALSE(got.error) << got.error->message;
  EXPECT_EQ(got.only().content, "xyz<|im_end|>");
  EXPECT_EQ(got.only().reason, FinishReason::kLength);
  EXPECT_EQ(got.usage.completion_tokens, 0u);
}

TEST_F(CompletionTest, EchoWithLogprobsScoresThePrompt) {
  start_counting();
  CompletionRequest request = completion("abd");
  request.echo = true;
  request.params.logprobs = true;
  request.params.top_logprobs = 1;
  request.params.max_tokens = 1;
  const Collected got = collect(service->complete(request));
  EXPECT_EQ(got.only().content, "abde");
  const auto& logprobs = got.only().logprobs;
  ASSERT_EQ(logprobs.size(), 4u);
  EXPECT_TRUE(std::isnan(logprobs[0].token.logprob)) << "nothing predicts the first token";
  EXPECT_GT(logprobs[1].token.logprob, -0.1);  // b after a
  EXPECT_LT(logprobs[2].token.logprob, -10);   // d after b
  EXPECT_EQ(logprobs[2].top.at(0).bytes, "c");
  EXPECT_EQ(logprobs[3].token.bytes, "e");
}

TEST_F(CompletionTest, EchoDoesNotShowTheAddedBeginToken) {
  vocabulary.add_bos = true;
  start_counting();
  CompletionRequest request = completion("ab");
  request.echo = true;
  request.params.logprobs = true;
  request.params.max_tokens = 1;
  const Collected got = collect(service->complete(request));
  EXPECT_EQ(got.usage.prompt_tokens, 3u);
  EXPECT_EQ(got.only().content, "abc");
  ASSERT_EQ(got.only().logprobs.size(), 3u);
  EXPECT_FALSE(std::isnan(got.only().logprobs[0].token.logprob)) << "BOS predicts it";
}

TEST_F(CompletionTest, FillInTheMiddlePutsTheTokensRound) {
  std::vector<TokenId> seen;
  script.next = [&](std::span<const TokenId> history) {
    if (seen.empty()) seen.assign(history.begin(), history.end());
    return fake::kImEnd;
  };
  start();
  CompletionRequest request = completion("ab<|im_end|>");
  request.suffix = "yz";
  const Collected got = collect(service->complete(request));
  ASSERT_FALSE(got.error) << got.error->message;
  const std::string marked = "ab<|im_end|>";  // as text: source code may contain it
  std::vector<TokenId> expected{fake::kFimPrefix};
  expected.insert(expected.end(), marked.begin(), marked.end());
  expected.insert(expected.end(), {fake::kFimSuffix, 'y', 'z', fake::kFimMiddle});
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(got.usage.prompt_tokens, expected.size());
}

TEST_F(CompletionTest, FillInTheMiddleNeedsTheTokens) {
  vocabulary.fill_in_the_middle = false;
  start_counting();
  CompletionRequest request = completion("ab");
  request.suffix = "yz";
  const auto reply = service->complete(request);
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(reply.error().param, "suffix");
}

TEST_F(CompletionTest, WrongPromptsAreRefused) {
  start_counting();
  const auto refused = [&](Prompt prompt) {
    CompletionRequest request;
    request.prompts.push_back(std::move(prompt));
    const auto reply = service->complete(request);
    ASSERT_FALSE(reply.ok());
    EXPECT_EQ(reply.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(reply.error().param, "prompt");
  };
  refused(std::string());
  refused(std::vector<TokenId>{});
  refused(std::vector<TokenId>{-1});
  refused(std::vector<TokenId>{1'000'000});
  refused(std::string(5000, 'a'));
  EXPECT_FALSE(service->complete(CompletionRequest()).ok());
  CompletionRequest nothing = completion("a");
  nothing.params.max_tokens = 0;
  EXPECT_EQ(service->complete(nothing).error().param, "max_tokens");
}

}  // namespace
}  // namespace hocket::testing_engine
