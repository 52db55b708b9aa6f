// runtime/speculative/decode_both.h: one generation, with a source of drafts or without, and everything that must not
// depend on it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lm/language_model.h"
#include "runtime/generation.h"
#include "runtime/speculative/decoder.h"
#include "runtime/speculative/draft_prefill.h"

namespace hocket::test {

using Tokens = std::vector<TokenId>;

struct Task {
  Tokens prompt;
  SamplingParams sampling;
  GenerationOptions generation;
  std::function<std::unique_ptr<TokenConstraint>()> constraint;  // may be empty
  DraftSettings drafts;
};

struct Outcome {
  Tokens ids;
  std::string text;
  std::vector<double> logprobs;
  GenerationEnd end = GenerationEnd::kNone;
  std::size_t n_remembered = 0;  // length of the sequence
  std::optional<Error> error;
  DraftCounts counts;
};

inline SamplingParams greedy() {
  SamplingParams params;
  params.temperature = 0;
  params.seed = 1;
  return params;
}

// As prefill(). `source` may be nullptr; otherwise it has begun with the tokens that the sequence holds.
inline Result<void> prefill_for_drafts(LmRunner& runner, SeqId seq, std::span<const TokenId> tokens,
                                       DraftSource* source, const CancelToken& cancel) {
  PrefillHooks hooks;
  if (source && source->traits().hidden) hooks.output = StepOutput::kLogitsAndHidden;
  std::size_t first = runner.memory().length(seq);
  hooks.on_progress = [&](std::size_t n_done) -> Result<void> {
    const auto chunk = tokens.subspan(first, n_done - first);
    if (source) TRY(tell_of_prompt(*source, StepRows(runner, chunk.size()), first, chunk));
    first = n_done;
    return {};
  };
  return prefill(runner, seq, tokens, hooks, cancel);
}

// `source` nullptr: one token a step.
inline Outcome decode(LmRunner& runner, const Tokenizer& tokenizer, const Task& task, DraftSource* source,
                      const CancelToken& cancel = {}) {
  Outcome out;
  runner.memory().clear(0);
  if (source) {
    EXPECT_TRUE(source->begin(0).ok());
  }
  const auto filled = prefill_for_drafts(runner, 0, task.prompt, source, cancel);
  EXPECT_TRUE(filled.ok()) << filled.error().message;
  auto sampler = Sampler::create(task.sampling, tokenizer, runner.model().n_vocab(), runner.options().n_ctx);
  EXPECT_TRUE(sampler.ok()) << sampler.error().message;
  for (const TokenId id : task.prompt) (*sampler)->accept(id);
  Generation generation(tokenizer, std::move(*sampler), task.constraint ? task.constraint() : nullptr, task.generation);

  const auto draw = [&](std::span<const float> row) -> Result<SpeculativeDecoder::Drawn> {
    TRY_ASSIGN(const GeneratedToken token, generation.advance(row));
    out.ids.push_back(token.id);
    out.text += token.text;
    if (token.logprobs) out.logprobs.push_back(token.logprobs->chosen.logprob);
    return SpeculativeDecoder::Drawn{token.id, generation.ended()};
  };
  const auto run = [&]() -> Result<void> {
    TRY_ASSIGN(const auto first, draw(runner.output(runner.n_outputs() - 1)));
    if (source == nullptr) {
      for (TokenId last = first.id; !generation.ended();) {
        const BatchToken next{last, 0, true};
        TRY(runner.step(std::span(&next, 1), StepOutput::kLogits, cancel));
        TRY_ASSIGN(const auto drawn, draw(runner.output(0)));
        last = drawn.id;
      }
      return {};
    }
    Tokens history = task.prompt;
    history.push_back(first.id);
    SpeculativeDecoder decoder(runner, 0, *source, task.drafts, std::move(history));
    while (!generation.ended()) {
      const auto stepped = decoder.step(task.generation.max_tokens - generation.n_tokens(), draw, cancel, {});
      out.counts = decoder.counts();
      TRY(stepped);
    }
    return {};
  };
  if (const auto ran = run(); !ran) out.error = ran.error();
  out.end = generation.end();
  out.n_remembered = runner.memory().length(0);
  return out;
}

inline void expect_equal(const Outcome& with, const Outcome& without) {
  EXPECT_EQ(with.ids, without.ids);
  EXPECT_EQ(with.text, without.text);
  EXPECT_EQ(with.end, without.end);
  EXPECT_EQ(with.n_remembered, without.n_remembered);
  EXPECT_EQ(with.error ? with.error->message : "", without.error ? without.error->message : "");
}

// Proposes what a function says, and keeps what it is told.
class ScriptedSource : public DraftSource {
 public:
  using Propose = std::function<Tokens(std::span<const TokenId> history, std::size_t n_max)>;
  explicit ScriptedSource(Propose propose, std::size_t n_max = 4) : propose_(std::move(propose)), n_max_(n_max) {}

  DraftTraits traits() const override { return {.n_max = n_max_, .token_cost = 0, .acceptance = 0.98}; }
  Result<void> begin(std::size_t) override { return {}; }
  Result<Draft> propose(const DraftRequest& request) override {
    if (request.check) TRY(request.check());
    Tokens tokens = propose_(request.history, request.n_max);
    tokens.resize(std::min(tokens.size(), request.n_max));
    return Draft{std::move(tokens), {}};
  }
  Result<void> accept(const TargetStep& step) override {
    if (on_accept) on_accept(step);
    return {};
  }

  std::function<void(const TargetStep&)> on_accept;

 private:
  Propose propose_;
  std::size_t n_max_;
};

}  // namespace hocket::test
