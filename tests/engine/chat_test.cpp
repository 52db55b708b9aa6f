// Chat requests over the fake model: text, ends, usage, choices, log-probabilities, checks before queueing.
#include <algorithm>
#include <cmath>

#include "engine/service_fixture.h"

namespace hocket::testing_engine {
namespace {

class ChatTest : public ServiceTest {};

TEST_F(ChatTest, AnswersWithTextUsageAndStop) {
  start_saying("Hello, world!");
  const Collected got = collect(service->chat(ask("Hi")));
  ASSERT_FALSE(got.error) << got.error->message;
  EXPECT_EQ(got.only().content, "Hello, world!");
  EXPECT_TRUE(got.only().finished);
  EXPECT_EQ(got.only().reason, FinishReason::kStop);
  const auto prompt = service->apply_template(ask("Hi"));
  ASSERT_TRUE(prompt.ok());
  const auto ids = service->tokenize(*prompt, {false, true});
  EXPECT_EQ(got.usage.prompt_tokens, ids->size());
  EXPECT_EQ(got.usage.completion_tokens, std::string("Hello, world!").size() + 1);  // and the end token
  EXPECT_EQ(got.usage.cached_tokens, 0u);
  EXPECT_EQ(got.usage.reasoning_tokens, 0u);
  EXPECT_EQ(got.timings.prefill_tokens, ids->size());
  EXPECT_EQ(got.timings.decode_tokens, got.usage.completion_tokens - 1);
  EXPECT_GE(got.timings.total_ms, got.timings.ttft_ms);
}

TEST_F(ChatTest, CharactersOfSeveralBytesArriveWhole) {
  start_saying("naïve – 漢字 🎵");
  auto reply = service->chat(ask("Hi"));
  ASSERT_TRUE(reply.ok());
  std::string all;
  while (true) {
    const auto event = (*reply)->next(milliseconds(1000));
    ASSERT_TRUE(event.ok());
    ASSERT_TRUE(event->has_value());
    if (std::holds_alternative<ReplyDone>(**event)) break;
    if (const auto* delta = std::get_if<DeltaEvent>(&**event)) {
      for (const ReplyDelta& part : delta->deltas) {
        EXPECT_TRUE(is_valid_utf8(part.text));
        all += part.text;
      }
    }
  }
  EXPECT_EQ(all, "naïve – 漢字 🎵");
}

TEST_F(ChatTest, MaxTokensEndsWithLength) {
  start_saying("0123456789");
  ChatRequest request = ask("Hi");
  request.params.max_tokens = 4;
  const Collected got = collect(service->chat(request));
  EXPECT_EQ(got.only().content, "0123");
  EXPECT_EQ(got.only().reason, FinishReason::kLength);
  EXPECT_EQ(got.usage.completion_tokens, 4u);
  EXPECT_EQ(got.end.details->max_tokens, 4u);
  EXPECT_FALSE(got.end.details->context_full);
}

TEST_F(ChatTest, TheEndTellsSettingsMemoryAndTimes) {
  model_sampling.top_k = 7;
  options.defaults.min_p = 0.25f;
  start_saying("0123456789");
  ChatRequest request = ask("Hi");
  request.params.temperature = 0.5f;
  const Collected got = collect(service->chat(request));
  EXPECT_EQ(got.end.details->sampling.top_k, 7);
  EXPECT_EQ(got.end.details->sampling.min_p, 0.25f);
  EXPECT_EQ(got.end.details->sampling.temperature, 0.5f);
  EXPECT_GE(got.end.details->sampling.seed, 0);  // the one drawn, not the wish for any
  EXPECT_EQ(got.end.details->max_tokens, 1024 - got.usage.prompt_tokens);
  EXPECT_GT(got.end.details->rss_bytes, 1u << 20);
  EXPECT_GE(got.end.details->peak_rss_bytes, got.end.details->rss_bytes / 2);
  EXPECT_GE(got.end.details->minor_faults, 0);
  EXPECT_LE(got.timings.decode_compute_ms, got.timings.decode_ms);
}

TEST_F(ChatTest, TheContextEndsAnAnswerThatNeverStops) {
  script.next = [](std::span<const TokenId>) { return TokenId{'x'}; };
  runner_options.n_ctx = 64;
  start();
  const Collected got = collect(service->chat(ask("Hi")));
  ASSERT_FALSE(got.error) << got.error->message;
  EXPECT_EQ(got.only().reason, FinishReason::kLength);
  EXPECT_EQ(got.usage.prompt_tokens + got.usage.completion_tokens, 64u);
  EXPECT_TRUE(got.end.details->context_full);
  EXPECT_EQ(got.end.details->max_tokens, 64 - got.usage.prompt_tokens);
}

TEST_F(ChatTest, AStopStringAcrossTokensIsNotShown) {
  start_saying("one two STOP three");
  ChatRequest request = ask("Hi");
  request.params.stop = {"", "STOP"};
  const Collected got = collect(service->chat(request));
  EXPECT_EQ(got.only().content, "one two ");
  EXPECT_EQ(got.only().reason, FinishReason::kStop);
  EXPECT_EQ(got.only().stop_string, "STOP");
}

TEST_F(ChatTest, TheBeginningOfAStopStringAtTheEndIsShown) {
  start_saying("almost STO");
  ChatRequest request = ask("Hi");
  request.params.stop = {"STOP"};
  const Collected got = collect(service->chat(request));
  EXPECT_EQ(got.only().content, "almost STO");
  EXPECT_EQ(got.only().stop_string, "");
}

TEST_F(ChatTest, SeveralChoicesShareOnePrefillAndEachHasItsEnd) {
  start_saying("abc");
  ChatRequest request = ask("Hi");
  request.params.n = 3;
  request.params.max_tokens = 50;
  const Collected got = collect(service->chat(request));
  ASSERT_FALSE(got.error) << got.error->message;
  ASSERT_EQ(got.choices.size(), 3u);
  for (const auto& choice : got.choices) {
    EXPECT_EQ(choice.content, "abc");
    EXPECT_TRUE(choice.finished);
  }
  EXPECT_EQ(got.usage.completion_tokens, 12u);
  // One prompt step, then the three together.
  EXPECT_EQ(runner->steps(), (std::vector<std::size_t>{got.usage.prompt_tokens, 3, 3, 3}));
}

TEST_F(ChatTest, ChoicesThatDoNotFitTogetherRunOneAfterAnother) {
  start_saying("abc");
  ChatRequest request = ask("Hi");
  request.params.n = 2;  // no limit: each may fill the context
  const Collected got = collect(service->chat(request));
  ASSERT_FALSE(got.error) << got.error->message;
  ASSERT_EQ(got.choices.size(), 2u);
  EXPECT_EQ(got.choices[0].content, "abc");
  EXPECT_EQ(got.choices[1].content, "abc");
  EXPECT_EQ(runner->steps(), (std::vector<std::size_t>{got.usage.prompt_tokens, 1, 1, 1, 1, 1, 1}));
}

TEST_F(ChatTest, TheSameSeedGivesTheSameChoicesAndTheyDiffer) {
  script.peak = 0;
  start();
  ChatRequest request = ask("Hi");
  request.params.n = 3;
  request.params.max_tokens = 24;
  request.params.seed = 7;
  request.params.temperature = 1.0f;
  const Collected first = collect(service->chat(request));
  const Collected again = collect(service->chat(request));
  ASSERT_EQ(first.choices.size(), 3u);
  ASSERT_EQ(again.choices.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(first.choices[i].content, again.choices[i].content);
  EXPECT_NE(first.choices[0].content, first.choices[1].content);
  request.params.seed = 8;
  EXPECT_NE(collect(service->chat(request)).choices[0].content, first.choices[0].content);
}

TEST_F(ChatTest, LogprobsComeWithTheTextTheyBelongTo) {
  start_saying("Hey");
  ChatRequest request = ask("Hi");
  request.params.logprobs = true;
  request.params.top_logprobs = 2;
  const Collected got = collect(service->chat(request));
  const auto& logprobs = got.only().logprobs;
  ASSERT_EQ(logprobs.size(), 3u);  // not the end token
  std::string bytes;
  for (const TokenLogprobs& entry : logprobs) {
    bytes += entry.token.bytes;
    EXPECT_LE(entry.token.logprob, 0.0);
    EXPECT_GT(entry.token.logprob, -0.1);
    ASSERT_EQ(entry.top.size(), 2u);
    EXPECT_EQ(entry.top[0].id, entry.token.id);
    EXPECT_GE(entry.top[0].logprob, entry.top[1].logprob);
  }
  EXPECT_EQ(bytes, "Hey");
}

TEST_F(ChatTest, LogprobsWithoutTopAreEmptyLists) {
  start_saying("Hey");
  ChatRequest request = ask("Hi");
  request.params.logprobs = true;
  const Collected got = collect(service->chat(request));
  ASSERT_EQ(got.only().logprobs.size(), 3u);
  EXPECT_TRUE(got.only().logprobs[0].top.empty());
}

TEST_F(ChatTest, APromptOfSeveralChunksReportsProgress) {
  start_saying("ok");
  const Collected got = collect(service->chat(ask(std::string(300, 'a'))));
  ASSERT_FALSE(got.error) << got.error->message;
  EXPECT_EQ(got.only().content, "ok");
  ASSERT_GE(got.progress.size(), 5u);
  EXPECT_EQ(got.progress[0].n_done, 64u);
  EXPECT_EQ(got.progress.back().n_done, got.usage.prompt_tokens);
  EXPECT_EQ(got.progress.back().n_total, got.usage.prompt_tokens);
}

TEST_F(ChatTest, APromptThatIsTooLongSaysHowLong) {
  start_saying("ok");
  auto reply = service->chat(ask(std::string(2000, 'a')));
  ASSERT_FALSE(reply.ok());
  const Error& error = reply.error();
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_EQ(error.reason, "context_length_exceeded");
  EXPECT_EQ(error.param, "messages");
  ASSERT_EQ(error.numbers.size(), 2u);
  EXPECT_EQ(error.numbers[0].first, "n_prompt_tokens");
  EXPECT_GT(error.numbers[0].second, 2000);
  EXPECT_EQ(error.numbers[1], (std::pair<std::string, int64_t>{"n_ctx", 1024}));
}

TEST_F(ChatTest, WrongFieldsAreRefusedByName) {
  start_saying("ok");
  const auto refused = [&](const std::string& field, auto&& change) {
    ChatRequest request = ask("Hi");
    change(request);
    const auto reply = service->chat(std::move(request));
    ASSERT_FALSE(reply.ok()) << field;
    EXPECT_EQ(reply.error().code, ErrorCode::kInvalid) << field;
    EXPECT_EQ(reply.error().param, field);
  };
  refused("messages", [](ChatRequest& r) { r.messages.clear(); });
  refused("messages", [](ChatRequest& r) { r.messages[0].role = "wizard"; });
  refused("n", [](ChatRequest& r) { r.params.n = 0; });
  refused("n", [](ChatRequest& r) { r.params.n = 9; });
  refused("max_tokens", [](ChatRequest& r) { r.params.max_tokens = 0; });
  refused("max_tokens", [](ChatRequest& r) { r.params.max_tokens = -5; });
  refused("stop", [](ChatRequest& r) { r.params.stop.assign(17, "x"); });
  refused("stop", [](ChatRequest& r) { r.params.stop = {std::string(257, 'x')}; });
  refused("top_logprobs", [](ChatRequest& r) { r.params.top_logprobs = 2; });
  refused("logit_bias", [](ChatRequest& r) { r.params.logit_bias = {{100'000, 1.0f}}; });
  refused("tool_choice", [](ChatRequest& r) { r.tool_choice.kind = ToolChoiceKind::kRequired; });
  refused("continue_final_message", [](ChatRequest& r) { r.continue_final_message = true; });
  EXPECT_TRUE(runner->steps().empty()) << "a refused request reached the model";
}

TEST_F(ChatTest, ABanKeepsATokenOut) {
  start_saying("xyz");
  ChatRequest request = ask("Hi");
  request.params.logit_bias = {{'x', -INFINITY}};
  request.params.max_tokens = 1;
  request.params.temperature = 0.0f;
  const Collected got = collect(service->chat(request));
  EXPECT_EQ(got.only().content.find('x'), std::string::npos);
}

TEST_F(ChatTest, DeveloperIsSystem) {
  start_saying("ok");
  ChatRequest request = ask("Hi");
  Message developer;
  developer.role = "developer";
  developer.content = "Be brief.";
  request.messages.insert(request.messages.begin(), developer);
  const auto rendered = service->apply_template(request);
  ASSERT_TRUE(rendered.ok());
  EXPECT_NE(rendered->find("system\nBe brief."), std::string::npos) << *rendered;
}

TEST_F(ChatTest, ABeginOfTextThatTheTemplateWritesIsNotDoubled) {
  vocabulary.add_bos = true;  // the vocabulary's BOS is what ChatML begins with
  start_saying("ok");
  const auto prompt = service->apply_template(ask("Hi"));
  const auto ids = service->tokenize(*prompt, {false, true});
  const Collected got = collect(service->chat(ask("Hi")));
  EXPECT_EQ(got.usage.prompt_tokens, ids->size());
}

TEST_F(ChatTest, ABadTemplateStopsChatsButNotCompletions) {
  script.next = [](std::span<const TokenId>) { return TokenId{'x'}; };
  chat_template = "{% if %}";
  start();
  const auto reply = service->chat(ask("Hi"));
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().code, ErrorCode::kUnsupported);
  CompletionRequest request = completion("abc");
  request.params.max_tokens = 2;
  EXPECT_EQ(collect(service->complete(request)).only().content, "xx");
}

TEST_F(ChatTest, InfoNamesTheModel) {
  options.aliases = {"small", "tiny"};
  start_saying("ok");
  EXPECT_EQ(service->info().model_id, "small");
  EXPECT_EQ(service->info().aliases, options.aliases);
  EXPECT_EQ(service->info().n_ctx, 1024u);
  EXPECT_EQ(service->info().eos_text, "<|im_end|>");
}

}  // namespace
}  // namespace hocket::testing_engine
