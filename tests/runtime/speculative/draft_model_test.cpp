#include "runtime/speculative/draft_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/byte_tokenizer.h"
#include "support/fake_language_model.h"

namespace hocket {
namespace {

using Tokens = std::vector<TokenId>;

// A model that counts: after 5 comes 6.
class DraftModelTest : public ::testing::Test {
 protected:
  DraftModelTest() {
    options_.n_ctx = 64;
    options_.n_batch = 4;
    script_.exact = true;
    script_.next = [](std::span<const TokenId> history) { return (history.back() + 1) % 256; };
    draft_options_.n_vocab = model_.n_vocab();
    draft_options_.token_cost = 0.1;
  }
  void make() {
    runner_ = std::make_unique<fake::Runner>(model_, options_, script_);
    source_ = std::make_unique<DraftModel>(*runner_, draft_options_);
  }
  Result<Draft> propose(const Tokens& history, std::size_t n_max, float p_min = 0) {
    if (!source_) make();
    DraftRequest request;
    request.history = history;
    request.n_max = n_max;
    request.p_min = p_min;
    request.check = check_;
    request.cancel = cancel_;
    return source_->propose(request);
  }
  Tokens held() const {
    Tokens tokens;
    for (const fake::Cell& cell : runner_->fake_memory().at(0)) tokens.push_back(cell.token);
    return tokens;
  }

  fake::Model model_{64 + 256};
  RunnerOptions options_;
  fake::Script script_;
  DraftModelOptions draft_options_;
  std::function<Result<void>()> check_;
  CancelToken cancel_;
  std::unique_ptr<fake::Runner> runner_;
  std::unique_ptr<DraftModel> source_;
};

TEST_F(DraftModelTest, ProposesItsMostProbableTokens) {
  const auto draft = propose({10, 20, 30}, 3);
  ASSERT_TRUE(draft.ok());
  EXPECT_EQ(draft->tokens, (Tokens{31, 32, 33}));
  ASSERT_EQ(draft->p.size(), 3u);
  for (const float p : draft->p) EXPECT_GT(p, 0.999f);
  EXPECT_EQ(held(), (Tokens{10, 20, 30, 31, 32})) << "the last one needs no step";
  EXPECT_EQ(source_->traits().token_cost, 0.1);
}

TEST_F(DraftModelTest, FollowsWhatWasAccepted) {
  ASSERT_TRUE(propose({10, 20, 30}, 3).ok());
  const std::size_t n_before = runner_->steps().size();
  // 31 was accepted, then 7 drawn.
  const auto draft = propose({10, 20, 30, 31, 7}, 2);
  ASSERT_TRUE(draft.ok());
  EXPECT_EQ(draft->tokens, (Tokens{8, 9}));
  EXPECT_EQ(held(), (Tokens{10, 20, 30, 31, 7, 8}));
  std::vector<std::size_t> steps = runner_->steps();
  steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(n_before));
  EXPECT_EQ(steps, (std::vector<std::size_t>{1, 1})) << "only what is new is evaluated";
}

TEST_F(DraftModelTest, AllAcceptedNeedsTheLastDraftToo) {
  ASSERT_TRUE(propose({1}, 2).ok());
  const auto draft = propose({1, 2, 3, 4}, 1);
  ASSERT_TRUE(draft.ok());
  EXPECT_EQ(draft->tokens, Tokens{5});
  EXPECT_EQ(held(), (Tokens{1, 2, 3, 4}));
}

TEST_F(DraftModelTest, TheSameHistoryAgainGivesTheSame) {
  const auto first = propose({1, 2, 3}, 3), again = propose({1, 2, 3}, 3);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(first->tokens, again->tokens);
  EXPECT_EQ(first->p, again->p);
}

TEST_F(DraftModelTest, MemoriesThatCannotBeCutStartAgain) {
  make();
  runner_->fake_memory().cuts_anywhere = false;
  ASSERT_TRUE(propose({10, 20, 30}, 3).ok());
  const auto draft = propose({10, 20, 30, 40}, 1);
  ASSERT_TRUE(draft.ok());
  EXPECT_EQ(draft->tokens, Tokens{41});
  EXPECT_EQ(held(), (Tokens{10, 20, 30, 40}));
}

TEST_F(DraftModelTest, ANewSequenceKeepsOnlyWhatItMay) {
  ASSERT_TRUE(propose({1, 2, 3, 4, 5, 6, 7, 8}, 1).ok());
  ASSERT_TRUE(source_->begin(7).ok());
  const std::size_t n_before = runner_->steps().size();
  ASSERT_TRUE(propose({1, 2, 3, 4, 5, 6, 7, 8}, 1).ok());
  EXPECT_EQ(runner_->steps().size() - n_before, 1u) << "the first chunk is kept";
  EXPECT_EQ(runner_->steps().back(), 4u);
  ASSERT_TRUE(source_->begin(0).ok());
  ASSERT_TRUE(propose({1, 2, 3, 4, 5, 6, 7, 8}, 1).ok());
  EXPECT_EQ(runner_->steps().size() - n_before, 3u);
}

TEST_F(DraftModelTest, StopsBeforeImprobableTokensAndBehindEnds) {
  script_.peak = 2;
  auto draft = propose({1, 2, 3}, 3, 0.9f);
  ASSERT_TRUE(draft.ok());
  EXPECT_TRUE(draft->tokens.empty());
  draft = propose({1, 2, 3}, 3, 0.0f);
  ASSERT_TRUE(draft.ok());
  ASSERT_EQ(draft->tokens.size(), 3u);
  for (const float p : draft->p) EXPECT_LT(p, 0.1f);

  source_.reset();
  draft_options_.ends = {5};
  draft = propose({1, 2, 3}, 4);
  ASSERT_TRUE(draft.ok());
  EXPECT_EQ(draft->tokens, (Tokens{4, 5}));
}

TEST_F(DraftModelTest, NeverProposesIdsBeyondTheVocabulary) {
  script_.next = [](std::span<const TokenId>) { return 300; };
  draft_options_.n_vocab = 256;
  const auto draft = propose({1, 2, 3}, 4);
  ASSERT_TRUE(draft.ok());
  ASSERT_EQ(draft->tokens.size(), 4u);
  for (const TokenId id : draft->tokens) EXPECT_LT(id, 256);
}

TEST_F(DraftModelTest, TheContextBoundsTheDraft) {
  options_.n_ctx = 8;
  auto draft = propose(Tokens(6, 1), 5);
  ASSERT_TRUE(draft.ok());
  EXPECT_EQ(draft->tokens.size(), 3u);  // 2, 3 are evaluated, 4 is not
  EXPECT_EQ(held().size(), 8u);
  draft = propose(Tokens(8, 1), 5);
  ASSERT_TRUE(draft.ok());
  EXPECT_EQ(draft->tokens.size(), 1u);
  draft = propose(Tokens(9, 1), 5);
  ASSERT_TRUE(draft.ok());
  EXPECT_TRUE(draft->tokens.empty());
}

TEST_F(DraftModelTest, LongHistoriesCanBeInterruptedAndGoneOnWith) {
  int n_chunks = 0;
  check_ = [&]() -> Result<void> {
    return ++n_chunks == 2 ? Result<void>(Error(ErrorCode::kTimeout, "too late")) : Result<void>();
  };
  Tokens history;
  for (int i = 0; i < 20; ++i) history.push_back(i);
  auto draft = propose(history, 1);
  ASSERT_FALSE(draft.ok());
  EXPECT_EQ(draft.error().code, ErrorCode::kTimeout);
  check_ = nullptr;
  draft = propose(history, 1);
  ASSERT_TRUE(draft.ok());
  EXPECT_EQ(draft->tokens, Tokens{20});
  EXPECT_EQ(runner_->steps(), std::vector<std::size_t>(5, 4)) << "the two chunks were kept";

  cancel_.cancel();
  history.push_back(3);
  draft = propose(history, 1);
  ASSERT_FALSE(draft.ok());
  EXPECT_EQ(draft.error().code, ErrorCode::kCancelled);
}

// ---- vocabularies

std::unique_ptr<Tokenizer> vocabulary(const std::function<void(Metadata&)>& change = {}) {
  Metadata metadata = fake::byte_vocabulary();
  if (change) change(metadata);
  auto loaded = Tokenizer::load(metadata);
  EXPECT_TRUE(loaded.ok()) << (loaded ? "" : loaded.error().message);
  return loaded ? std::move(*loaded) : nullptr;
}

void add_token(Metadata& metadata, const std::string& text, TokenType type) {
  auto tokens = **metadata.strings("tokenizer.ggml.tokens");
  auto types = **metadata.integers("tokenizer.ggml.token_type");
  tokens.push_back(text);
  types.push_back(static_cast<int64_t>(type));
  metadata.set("tokenizer.ggml.tokens", MetadataArray{tokens});
  metadata.set("tokenizer.ggml.token_type", MetadataArray{types});
}

TEST(SameVocabulary, EqualOnesMayBeUsed) {
  EXPECT_TRUE(check_same_vocabulary(*vocabulary(), *vocabulary()).ok());
}

TEST(SameVocabulary, UnusedTokensAtTheEndDoNotMatter) {
  const auto padded = vocabulary([](Metadata& m) { add_token(m, "[PAD261]", TokenType::kUnused); });
  EXPECT_TRUE(check_same_vocabulary(*vocabulary(), *padded).ok());
  EXPECT_TRUE(check_same_vocabulary(*padded, *vocabulary()).ok());
}

TEST(SameVocabulary, OthersAreRefusedWithTheReason) {
  const auto longer = vocabulary([](Metadata& m) { add_token(m, "<|more|>", TokenType::kControl); });
  const auto sizes = check_same_vocabulary(*vocabulary(), *longer);
  ASSERT_FALSE(sizes.ok());
  EXPECT_EQ(sizes.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(sizes.error().param, "draft-model");
  EXPECT_EQ(sizes.error().message, "the draft model cannot be used: its vocabulary has 262 tokens, the model's 261");

  const auto swapped = vocabulary([](Metadata& m) {
    auto tokens = **m.strings("tokenizer.ggml.tokens");
    std::swap(tokens['a'], tokens['b']);
    m.set("tokenizer.ggml.tokens", MetadataArray{tokens});
  });
  const auto texts = check_same_vocabulary(*vocabulary(), *swapped);
  ASSERT_FALSE(texts.ok());
  EXPECT_EQ(texts.error().message, "the draft model cannot be used: its token 97 is \"b\", the model's \"a\"");
}

}  // namespace
}  // namespace hocket
