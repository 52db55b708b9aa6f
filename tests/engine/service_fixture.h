// A service over the fake model, and ways to read what it answers.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/service.h"
#include "support/byte_tokenizer.h"
#include "support/fake_language_model.h"

namespace hocket::testing_engine {

using std::chrono::milliseconds;

// Everything that a reply gave, by choice.
struct Collected {
  struct Choice {
    std::string content, reasoning;
    std::vector<std::string> call_names, call_arguments;
    std::vector<TokenLogprobs> logprobs;
    bool finished = false;
    FinishReason reason = FinishReason::kStop;
    std::string stop_string;
  };
  std::vector<Choice> choices;
  std::vector<ProgressEvent> progress;
  bool done = false;
  Usage usage;
  Timings timings;
  ReplyDone end;
  std::optional<Error> error;

  const Choice& only() const {
    EXPECT_EQ(choices.size(), 1u) << (error ? error->message : "");
    static const Choice none;
    return choices.empty() ? none : choices.front();
  }
};

inline Collected collect(Reply& reply) {
  Collected out;
  const auto choice = [&](std::size_t i) -> Collected::Choice& {
    if (out.choices.size() <= i) out.choices.resize(i + 1);
    return out.choices[i];
  };
  const auto limit = Clock::now() + std::chrono::seconds(30);
  while (Clock::now() < limit) {
    const auto event = reply.next(milliseconds(100));
    if (!event) {
      out.error = event.error();
      return out;
    }
    if (!event->has_value()) continue;
    if (const auto* delta = std::get_if<DeltaEvent>(&**event)) {
      Collected::Choice& c = choice(delta->choice);
      EXPECT_FALSE(c.finished) << "a delta after the choice had finished";
      for (const ReplyDelta& part : delta->deltas) {
        switch (part.kind) {
          case ReplyDelta::Kind::kContent:
            c.content += part.text;
            break;
          case ReplyDelta::Kind::kReasoning:
            c.reasoning += part.text;
            break;
          case ReplyDelta::Kind::kToolCallStart:
            c.call_names.push_back(part.call_name);
            c.call_arguments.emplace_back();
            break;
          case ReplyDelta::Kind::kToolCallArguments:
            c.call_arguments.at(part.index) += part.text;
            break;
        }
      }
      c.logprobs.insert(c.logprobs.end(), delta->logprobs.begin(), delta->logprobs.end());
    } else if (const auto* finished = std::get_if<ChoiceFinished>(&**event)) {
      Collected::Choice& c = choice(finished->choice);
      EXPECT_FALSE(c.finished) << "a choice finished twice";
      c.finished = true;
      c.reason = finished->reason;
      c.stop_string = finished->stop_string;
    } else if (const auto* progress = std::get_if<ProgressEvent>(&**event)) {
      out.progress.push_back(*progress);
    } else if (const auto* done = std::get_if<ReplyDone>(&**event)) {
      out.done = true;
      out.usage = done->usage;
      out.timings = done->timings;
      out.end = *done;
      return out;
    }
  }
  ADD_FAILURE() << "the reply did not end";
  return out;
}

inline Collected collect(Result<std::unique_ptr<Reply>> reply) {
  if (!reply) {
    Collected out;
    out.error = reply.error();
    return out;
  }
  return collect(**reply);
}

// Says `text`, byte by byte, after every prompt that it was told of, then ends; further on it ends at once.
class Speaker {
 public:
  explicit Speaker(std::string text) : text_(std::move(text)) {}

  // After a chat prompt: what follows the last "assistant\n".
  TokenId next(std::span<const TokenId> history) const {
    std::string said;
    for (const TokenId id : history) said += id < 256 ? static_cast<char>(id) : '\1';
    static const std::string kHeader = "\1assistant\n";
    const std::size_t at = said.rfind(kHeader);
    const std::size_t n_said = at == std::string::npos ? 0 : said.size() - at - kHeader.size();
    return n_said < text_.size() ? static_cast<TokenId>(static_cast<unsigned char>(text_[n_said])) : fake::kImEnd;
  }

 private:
  std::string text_;
};

// Holds the generation thread in its next step until it is opened.
class Gate {
 public:
  void close() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++n_waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    --n_waiting_;
  }
  void wait_for_visitor() {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return n_waiting_ > 0; }));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  int n_waiting_ = 0;
};

class ServiceTest : public ::testing::Test {
 protected:
  void TearDown() override {
    gate.open();
    service.reset();
  }

  // Takes `options`, `runner_options`, `script` and `drafting` as the test has set them.
  void start() {
    ServiceParts parts{nullptr, fake::byte_tokenizer(vocabulary), nullptr, nullptr, make_template(), {}, "fp_test"};
    ASSERT_NE(parts.tokenizer, nullptr);
    parts.model_sampling = model_sampling;
    auto model = std::make_unique<fake::Model>(parts.tokenizer->size());
    if (!script.on_step) script.on_step = [this](std::span<const BatchToken>) { gate.pass(); };
    auto fake_runner = std::make_unique<fake::Runner>(*model, runner_options, script);
    runner = fake_runner.get();
    parts.model = std::move(model);
    parts.runner = std::move(fake_runner);
    parts.drafting = std::move(drafting);
    if (!parts.drafting) {
      auto loaded = load_drafting(options, nullptr, *parts.tokenizer, *parts.runner);
      ASSERT_TRUE(loaded.ok()) << loaded.error().message;
      parts.drafting = std::move(*loaded);
    }
    auto made = make_service(std::move(parts), options);
    ASSERT_TRUE(made.ok()) << made.error().message;
    service = std::move(*made);
  }
  void start_saying(const std::string& text) {
    auto speaker = std::make_shared<Speaker>(text);
    script.next = [speaker](std::span<const TokenId> history) { return speaker->next(history); };
    start();
  }
  Result<std::unique_ptr<ChatTemplate>> make_template() const {
    return ChatTemplate::parse(chat_template.empty() ? std::string(default_chat_template()) : chat_template,
                               "<|im_start|>", "<|im_end|>");
  }

  static ChatRequest ask(const std::string& text) {
    ChatRequest request;
    Message message;
    message.role = "user";
    message.content = text;
    request.messages.push_back(std::move(message));
    return request;
  }
  static CompletionRequest completion(const std::string& prompt) {
    CompletionRequest request;
    request.prompts.emplace_back(prompt);
    return request;
  }

  ServiceOptions options = [] {
    ServiceOptions o;
    o.model_path = "models/fake.gguf";
    return o;
  }();
  RunnerOptions runner_options = [] {
    RunnerOptions o;
    o.n_ctx = 1024;
    o.n_batch = 64;
    o.n_seqs = 9;
    return o;
  }();
  fake::Script script;
  fake::ByteTokenizerOptions vocabulary;
  SamplingParams model_sampling;
  std::string chat_template;
  std::unique_ptr<Drafting> drafting;  // nullptr: as the options say
  Gate gate;
  fake::Runner* runner = nullptr;
  std::shared_ptr<ChatService> service;
};

}  // namespace hocket::testing_engine
