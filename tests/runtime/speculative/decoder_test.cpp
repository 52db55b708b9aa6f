// Whatever a source of drafts proposes, text, end, log-probabilities and what the sequence remembers are those of a run
// without drafts. The fake model's rows depend on the tokens alone, so they must be equal to the last bit.
#include "runtime/speculative/decoder.h"

#include "runtime/speculative/decode_both.h"
#include "support/byte_tokenizer.h"
#include "support/fake_language_model.h"

namespace hocket::test {
namespace {

using fake::kImEnd;

Tokens bytes(std::string_view text) {
  Tokens tokens;
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

// Allows only these tokens, and nothing after `n` of them.
class OnlyThese : public TokenConstraint {
 public:
  OnlyThese(Tokens allowed, std::size_t n, std::size_t fails_at)
      : allowed_(std::move(allowed)), n_(n), fails_at_(fails_at) {}
  Result<bool> allowed(std::span<uint32_t> mask) override {
    std::fill(mask.begin(), mask.end(), 0u);
    for (const TokenId id : allowed_) mask[static_cast<std::size_t>(id) / 32] |= 1u << id % 32;
    return true;
  }
  Result<void> accept(TokenId id) override {
    EXPECT_NE(std::find(allowed_.begin(), allowed_.end(), id), allowed_.end()) << id;
    if (++n_accepted_ == fails_at_) return Error(ErrorCode::kInternal, "the constraint broke");
    return {};
  }
  bool complete() const override { return n_accepted_ == n_; }
  std::unique_ptr<TokenConstraint> clone() const override { return std::make_unique<OnlyThese>(*this); }

 private:
  Tokens allowed_;
  std::size_t n_, fails_at_;
  std::size_t n_accepted_ = 0;
};

class DecoderTest : public ::testing::Test {
 protected:
  DecoderTest() {
    options_.n_ctx = 256;
    options_.n_batch = 64;
    task_.prompt = bytes("Once upon a time");
    task_.sampling = greedy();
    task_.generation.max_tokens = 100;
    script_.exact = true;
    say("there was a hocket, and its voices took turns.");
  }

  // The model says this, then ends.
  void say(const std::string& text) {
    script_.next = [this, text](std::span<const TokenId> history) {
      const std::size_t n_said = history.size() - std::min(history.size(), task_.prompt.size());
      return n_said < text.size() ? static_cast<TokenId>(static_cast<unsigned char>(text[n_said])) : kImEnd;
    };
  }
  // Knows what the model will say; every `wrong`th token of the text is another one (0: none).
  ScriptedSource::Propose oracle(std::size_t wrong = 0) {
    return [this, wrong](std::span<const TokenId> history, std::size_t n_max) {
      Tokens all(history.begin(), history.end());
      while (all.size() < history.size() + n_max && all.back() != kImEnd) {
        const TokenId next = script_.next(all);
        all.push_back(wrong != 0 && all.size() % wrong == 0 ? (next + 1) % 256 : next);
      }
      return Tokens(all.begin() + static_cast<std::ptrdiff_t>(history.size()), all.end());
    };
  }
  std::unique_ptr<fake::Runner> runner() {
    auto made = std::make_unique<fake::Runner>(model_, options_, script_);
    made->fake_memory().cuts_anywhere = cuts_anywhere_;
    return made;
  }
  Outcome without() {
    auto plain = runner();
    Outcome out = decode(*plain, *tokenizer_, task_, nullptr);
    remembered_ = held(*plain);
    return out;
  }
  Outcome with(ScriptedSource& source) {
    auto drafting = runner();
    Outcome out = decode(*drafting, *tokenizer_, task_, &source);
    EXPECT_EQ(held(*drafting), remembered_);
    n_restored_ = drafting->fake_memory().n_restored;
    return out;
  }
  Outcome expect_same(ScriptedSource::Propose propose) {
    const Outcome expected = without();
    ScriptedSource source(std::move(propose));
    Outcome got = with(source);
    expect_equal(got, expected);
    EXPECT_EQ(got.logprobs, expected.logprobs);
    return got;
  }
  static Tokens held(fake::Runner& runner) {
    Tokens tokens;
    for (const fake::Cell& cell : runner.fake_memory().at(0)) tokens.push_back(cell.token);
    return tokens;
  }

  std::unique_ptr<Tokenizer> tokenizer_ = fake::byte_tokenizer();
  fake::Model model_{tokenizer_->size()};
  RunnerOptions options_;
  fake::Script script_;
  Task task_;
  bool cuts_anywhere_ = true;
  Tokens remembered_;
  std::size_t n_restored_ = 0;
};

TEST_F(DecoderTest, GoodDraftsSaveSteps) {
  const Outcome got = expect_same(oracle());
  EXPECT_EQ(got.text, "there was a hocket, and its voices took turns.");
  EXPECT_EQ(got.end, GenerationEnd::kEndToken);
  EXPECT_EQ(got.counts.n_drafted, got.counts.n_accepted);
  // 47 tokens with the end, the first of them from the prompt, five a step.
  EXPECT_EQ(got.counts.n_steps, 10u);
}

TEST_F(DecoderTest, WrongDraftsChangeNothing) {
  const Outcome got = expect_same(oracle(1));
  EXPECT_GT(got.counts.n_drafted, 0u);
  EXPECT_EQ(got.counts.n_accepted, 0u);
  EXPECT_EQ(got.counts.n_steps, got.ids.size() - 1);
}

TEST_F(DecoderTest, PartlyRightDraftsAreUsedAsFarAsTheyGo) {
  const Outcome got = expect_same(oracle(5));
  EXPECT_GT(got.counts.n_accepted, 10u);
  EXPECT_LT(got.counts.n_accepted, got.counts.n_drafted);
  EXPECT_LT(got.counts.n_steps, got.ids.size() - 1);
}

TEST_F(DecoderTest, NoDraftsAreStepsOfOneToken) {
  const Outcome got = expect_same([](auto, auto) { return Tokens(); });
  EXPECT_EQ(got.counts.n_drafted, 0u);
  EXPECT_EQ(got.counts.n_steps, got.ids.size() - 1);
}

TEST_F(DecoderTest, AStopStringInsideAnAcceptedRun) {
  for (const char* stop : {"was a", "hock", "t", "there", "turns.", "voices took"}) {
    task_.generation.stops = {stop};
    const Outcome got = expect_same(oracle());
    EXPECT_EQ(got.end, GenerationEnd::kStopString) << stop;
    EXPECT_EQ(got.text.find(stop), std::string::npos);
  }
}

TEST_F(DecoderTest, AnEndTokenAmongDrafts) {
  for (const char* text : {"", "a", "ab", "abc", "abcd", "abcde", "abcdef"}) {
    say(text);
    const Outcome got = expect_same(oracle());
    EXPECT_EQ(got.end, GenerationEnd::kEndToken);
    EXPECT_EQ(got.text, text);
  }
}

TEST_F(DecoderTest, DraftsThatGoOnBehindTheEnd) {
  say("abc");
  const Outcome got = expect_same([&](std::span<const TokenId> history, std::size_t n_max) {
    Tokens draft = oracle()(history, n_max);
    draft.resize(n_max, 'x');
    return draft;
  });
  EXPECT_EQ(got.text, "abc");
}

TEST_F(DecoderTest, TheTokenLimitInsideARun) {
  for (std::size_t n = 1; n <= 12; ++n) {
    task_.generation.max_tokens = n;
    const Outcome got = expect_same(oracle());
    EXPECT_EQ(got.end, GenerationEnd::kLength);
    EXPECT_EQ(got.ids.size(), n);
    EXPECT_EQ(got.counts.n_drafted, got.counts.n_accepted) << "nothing is drafted beyond the limit";
  }
}

TEST_F(DecoderTest, TheConstraintRejectsDrafts) {
  task_.constraint = [] { return std::make_unique<OnlyThese>(bytes("tehr wasc"), 0, 0); };
  task_.generation.max_tokens = 30;
  const Outcome got = expect_same(oracle());
  EXPECT_EQ(got.text.substr(0, 12), "there was a ");
  EXPECT_NE(got.text[12 + 1], 'o') << "h, o, c, k: o is forbidden";
}

TEST_F(DecoderTest, TheConstraintCompletesInsideARun) {
  for (std::size_t n = 1; n <= 8; ++n) {
    task_.constraint = [n] { return std::make_unique<OnlyThese>(bytes("tehr wasc"), n, 0); };
    const Outcome got = expect_same(oracle());
    EXPECT_EQ(got.end, GenerationEnd::kComplete);
    EXPECT_EQ(got.ids.size(), n);
  }
}

TEST_F(DecoderTest, AnErrorOfTheConstraintInsideARun) {
  for (std::size_t n = 2; n <= 8; ++n) {
    task_.constraint = [n] { return std::make_unique<OnlyThese>(bytes("tehr wasc"), 0, n); };
    const Outcome got = expect_same(oracle());
    ASSERT_TRUE(got.error);
    EXPECT_EQ(got.error->message, "the constraint broke");
  }
}

TEST_F(DecoderTest, ContextAndBatchesBoundTheDraft) {
  options_.n_ctx = task_.prompt.size() + 7;
  task_.generation.max_tokens = 7;
  expect_same(oracle());
  options_.n_ctx = 256;
  options_.n_batch = 2;
  task_.generation.max_tokens = 100;
  const Outcome got = expect_same(oracle());
  EXPECT_GT(got.counts.n_accepted, 0u);
}

TEST_F(DecoderTest, FewFreeCellsBoundTheDraft) {
  // The limit would allow more than fits: it ends as it does without drafts.
  options_.n_ctx = task_.prompt.size() + 9;
  const Outcome got = expect_same(oracle());
  ASSERT_TRUE(got.error);
  EXPECT_EQ(got.error->code, ErrorCode::kBusy);
  EXPECT_EQ(got.ids.size(), 10u);
}

TEST_F(DecoderTest, MemoriesThatCannotBeCutReturnAndReplay) {
  cuts_anywhere_ = false;
  const Outcome partly = expect_same(oracle(5));
  EXPECT_GT(partly.counts.n_accepted, 0u);
  EXPECT_GT(n_restored_, 0u);
  expect_same(oracle(1));
  task_.generation.stops = {"hock"};
  expect_same(oracle());
  task_.generation.stops.clear();
  say("abcdefghijklmno");  // with the end 16 tokens: the last step's draft holds to its end
  expect_same(oracle());
}

TEST_F(DecoderTest, WithPenaltiesAndLogprobsSampledTextIsEqual) {
  // Noise decides: nothing is certain enough for the peak to win always.
  script_.peak = 4;
  task_.sampling = SamplingParams();
  task_.sampling.repeat_penalty = 1.3f;
  task_.sampling.frequency_penalty = 0.5f;
  task_.sampling.dry_multiplier = 0.5f;
  task_.sampling.xtc_probability = 0.3f;
  task_.generation.max_tokens = 60;
  task_.generation.top_logprobs = 2;
  std::size_t n_accepted = 0, n_drafted = 0;
  for (int64_t seed = 1; seed <= 30; ++seed) {
    task_.sampling.seed = seed;
    task_.sampling.mirostat = static_cast<int>(seed % 3);
    const Outcome got = expect_same(oracle());
    EXPECT_EQ(got.logprobs.size(), got.ids.size());
    n_accepted += got.counts.n_accepted;
    n_drafted += got.counts.n_drafted;
  }
  EXPECT_GT(n_accepted, 100u);
  EXPECT_GT(n_drafted, n_accepted + 100);
}

TEST_F(DecoderTest, CancellingTheStepChangesNothing) {
  const CancelToken cancel;
  std::size_t n_before = 0;
  script_.on_step = [&](std::span<const BatchToken> batch) {
    if (batch.front().id == 'w' && batch.size() > 1) cancel.cancel();
  };
  auto drafting = runner();
  drafting->script.on_step = [&, inner = script_.on_step](std::span<const BatchToken> batch) {
    n_before = drafting->fake_memory().length(0);
    inner(batch);
  };
  // The first character of "was" is the last one drawn when a step begins with it.
  say("wwwwwwwwwwww");
  drafting->script.next = script_.next;
  ScriptedSource source(oracle());
  const Outcome got = decode(*drafting, *tokenizer_, task_, &source, cancel);
  ASSERT_TRUE(got.error);
  EXPECT_EQ(got.error->code, ErrorCode::kCancelled);
  EXPECT_EQ(got.n_remembered, n_before);
  EXPECT_EQ(got.ids, bytes("w"));
}

TEST_F(DecoderTest, TheSourceHearsWhatStays) {
  auto drafting = runner();
  ScriptedSource source(oracle(5));
  Tokens heard;
  std::size_t n_drafted = 0;
  source.on_accept = [&](const TargetStep& step) {
    EXPECT_EQ(step.first_position, task_.prompt.size() + heard.size());
    ASSERT_EQ(step.rows.size(), step.tokens.size());
    heard.insert(heard.end(), step.tokens.begin(), step.tokens.end());
    n_drafted += step.n_drafted;
    // Each row is the model's after that token.
    Tokens before = task_.prompt;
    before.insert(before.end(), heard.begin(), heard.end() - static_cast<std::ptrdiff_t>(step.tokens.size()));
    for (std::size_t i = 0; i < step.tokens.size(); ++i) {
      before.push_back(step.tokens[i]);
      const std::span<const float> row = step.rows[i].logits;
      EXPECT_EQ(std::max_element(row.begin(), row.end()) - row.begin(), script_.next(before));
    }
  };
  const Outcome got = decode(*drafting, *tokenizer_, task_, &source);
  EXPECT_EQ(heard, Tokens(got.ids.begin(), got.ids.end() - 1));
  EXPECT_EQ(n_drafted, got.counts.n_drafted);
}

TEST_F(DecoderTest, ErrorsOfTheSourceEndTheRun) {
  class Broken : public ScriptedSource {
   public:
    Broken() : ScriptedSource(Propose()) {}
    Result<Draft> propose(const DraftRequest&) override {
      return Error(ErrorCode::kOutOfMemory, "no memory for drafts");
    }
  } source;
  auto drafting = runner();
  const Outcome got = decode(*drafting, *tokenizer_, task_, &source);
  ASSERT_TRUE(got.error);
  EXPECT_EQ(got.error->message, "no memory for drafts");
  EXPECT_EQ(got.ids.size(), 1u);
  EXPECT_EQ(held(*drafting), task_.prompt);
}

TEST_F(DecoderTest, ZeroTurnsDraftsOff) {
  task_.drafts.n_max = 0;
  const Outcome got = expect_same(oracle());
  EXPECT_EQ(got.counts.n_drafted, 0u);
}

}  // namespace
}  // namespace hocket::test
