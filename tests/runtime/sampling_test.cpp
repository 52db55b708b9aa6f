#include "runtime/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "runtime/sampling_fixture.h"

namespace hocket {
namespace {

// Allows a fixed set of ids.
class FixedConstraint final : public TokenConstraint {
 public:
  explicit FixedConstraint(std::set<TokenId> ids) : ids_(std::move(ids)) {}
  Result<bool> allowed(std::span<uint32_t> mask) override {
    ++n_asked;
    if (fails) return Error(ErrorCode::kInternal, "broken", "grammar");
    if (everything) return false;
    std::fill(mask.begin(), mask.end(), 0);
    for (const TokenId id : ids_) mask[static_cast<std::size_t>(id) / 32] |= 1u << (id % 32);
    return true;
  }
  Result<void> accept(TokenId) override { return {}; }
  bool complete() const override { return is_complete; }
  std::unique_ptr<TokenConstraint> clone() const override { return std::make_unique<FixedConstraint>(*this); }

  int n_asked = 0;
  bool fails = false, everything = false, is_complete = false;

 private:
  std::set<TokenId> ids_;
};

std::vector<float> noise(uint32_t seed, float spread = 3) {
  std::mt19937 random(seed);
  std::vector<float> row(sampling_tokenizer().size());
  for (float& l : row) l = spread * (static_cast<float>(random() % 20001) / 10000.0f - 1);
  return row;
}

std::vector<TokenId> draws(Sampler& sampler, std::span<const float> row, int n) {
  std::vector<TokenId> ids;
  for (int i = 0; i < n; ++i) {
    const auto id = sampler.sample(row, nullptr);
    EXPECT_TRUE(id.ok());
    ids.push_back(id ? *id : kNoToken);
    sampler.accept(ids.back());
  }
  return ids;
}

// ---- masks and bans

TEST(Sampling, TheMaskActsBeforeEveryRule) {
  // Ids 7 and 9 are far below the top: a mask after top-k would leave nothing.
  auto row = noise(1);
  row[7] = -20;
  row[9] = -21;
  SamplingParams params = neutral();
  params.top_k = 5;
  params.top_p = 0.99f;
  const auto sampler = make_sampler(params);
  FixedConstraint constraint({7, 9});
  ASSERT_TRUE(sampler->sample(row, &constraint).ok());
  EXPECT_EQ(constraint.n_asked, 1);
  const auto found = distribution(*sampler);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(found.at(7), 1 / (1 + std::exp(-1.0)), 1e-6);
}

TEST(Sampling, OnlyAllowedTokensAreDrawn) {
  const auto sampler = make_sampler(neutral());
  FixedConstraint constraint({0, 31, 32, 63, 255, 260});
  std::set<TokenId> seen;
  for (uint32_t i = 0; i < 2000; ++i) {
    const auto id = sampler->sample(noise(i), &constraint);
    ASSERT_TRUE(id.ok());
    seen.insert(*id);
  }
  EXPECT_EQ(seen, (std::set<TokenId>{0, 31, 32, 63, 255, 260}));
}

TEST(Sampling, AConstraintThatAllowsEverythingChangesNothing) {
  const auto row = noise(2);
  const auto free = make_sampler(neutral()), masked = make_sampler(neutral());
  FixedConstraint constraint({});
  constraint.everything = true;
  EXPECT_EQ(*free->sample(row, nullptr), *masked->sample(row, &constraint));
  EXPECT_EQ(distribution(*free), distribution(*masked));
}

TEST(Sampling, AFailingConstraintEndsTheStep) {
  const auto sampler = make_sampler(neutral());
  FixedConstraint constraint({1});
  constraint.fails = true;
  const auto id = sampler->sample(noise(3), &constraint);
  ASSERT_FALSE(id.ok());
  EXPECT_EQ(id.error().param, "grammar");
}

TEST(Sampling, NothingLeftIsAnError) {
  for (const int mirostat : {0, 1, 2}) {
    SamplingParams params = neutral();
    params.mirostat = mirostat;
    params.top_k = 40;
    params.top_p = 0.9f;
    params.min_p = 0.1f;
    params.typical_p = 0.9f;
    params.top_n_sigma = 1;
    params.xtc_probability = 1;
    params.dynatemp_range = 0.5f;
    FixedConstraint constraint({});
    const auto id = make_sampler(params)->sample(noise(4), &constraint);
    ASSERT_FALSE(id.ok());
    EXPECT_EQ(id.error().code, ErrorCode::kInternal);
  }
}

TEST(Sampling, BansThatLeaveNothingAreTheRequestsFault) {
  SamplingParams params = neutral();
  params.logit_bias = {{7, kMinusInfinity}, {9, kMinusInfinity}};
  FixedConstraint constraint({7, 9});
  const auto id = make_sampler(params)->sample(noise(4), &constraint);
  ASSERT_FALSE(id.ok());
  EXPECT_EQ(id.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(id.error().param, "logit_bias");
}

TEST(Sampling, TheEndIsNotIgnoredWhereNothingElseMayFollow) {
  SamplingParams params = neutral();
  params.ignore_eos = true;
  FixedConstraint constraint({fake::kImEnd});
  const auto banned = make_sampler(params)->sample(noise(4), &constraint);
  ASSERT_FALSE(banned.ok());
  EXPECT_EQ(banned.error().param, "ignore_eos");
  constraint.is_complete = true;
  EXPECT_EQ(*make_sampler(params)->sample(noise(4), &constraint), fake::kImEnd);
}

TEST(Sampling, IgnoreEosAndBiasBan) {
  SamplingParams params = neutral();
  params.temperature = 0;
  auto row = padded({});
  row[fake::kImEnd] = 5;
  row[65] = 4;
  row[66] = 3;
  EXPECT_EQ(*make_sampler(params)->sample(row, nullptr), fake::kImEnd);
  params.ignore_eos = true;
  EXPECT_EQ(*make_sampler(params)->sample(row, nullptr), 65);
  params.logit_bias = {{65, kMinusInfinity}};
  EXPECT_EQ(*make_sampler(params)->sample(row, nullptr), 66);
  params.logit_bias = {{65, -0.5f}, {65, -0.75f}};  // biases add up
  EXPECT_EQ(*make_sampler(params)->sample(row, nullptr), 66);
}

TEST(Sampling, IdsBeyondTheVocabularyAreNeverDrawn) {
  const std::size_t n_tokens = sampling_tokenizer().size();
  auto sampler = Sampler::create(neutral(), sampling_tokenizer(), n_tokens + 60, 64);
  ASSERT_TRUE(sampler.ok());
  std::vector<float> row(n_tokens + 60, 100.0f);
  std::fill_n(row.begin(), n_tokens, 0.0f);
  for (int i = 0; i < 200; ++i) ASSERT_LT(*(*sampler)->sample(row, nullptr), static_cast<TokenId>(n_tokens));
  EXPECT_FALSE((*sampler)->sample(std::span(row).first(n_tokens), nullptr).ok()) << "a row that is too short";
}

TEST(Sampling, NotANumberIsNamed) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto row = noise(5);
    row[77] = bad;
    for (const float temperature : {0.0f, 1.0f}) {
      SamplingParams params = neutral();
      params.temperature = temperature;
      const auto id = make_sampler(params)->sample(row, nullptr);
      ASSERT_FALSE(id.ok());
      EXPECT_EQ(id.error().code, ErrorCode::kInternal);
      EXPECT_NE(id.error().message.find("77"), std::string::npos) << id.error().message;
    }
  }
}

// ---- randomness

TEST(Sampling, TheSeedDecides) {
  const auto row = noise(6);
  SamplingParams params = neutral();
  params.xtc_probability = 0.5f;
  params.seed = 42;
  const auto a = make_sampler(params), b = make_sampler(params);
  const auto first = draws(*a, row, 100);
  EXPECT_EQ(first, draws(*b, row, 100));
  EXPECT_EQ(a->seed(), 42u);
  params.seed = 43;
  EXPECT_NE(first, draws(*make_sampler(params), row, 100));
}

TEST(Sampling, TheStreamIsTheSameEverywhere) {
  // Eight equal candidates: the draws show three bits of each random number.
  const auto sampler = make_sampler(neutral());
  EXPECT_EQ(draws(*sampler, padded(std::vector<float>(8, 0.0f)), 12),
            (std::vector<TokenId>{5, 2, 3, 7, 1, 4, 3, 1, 2, 7, 4, 4}));
}

TEST(Sampling, ARandomSeedIsReportedAndRepeats) {
  SamplingParams params = neutral();
  params.seed = -1;
  const auto a = make_sampler(params), b = make_sampler(params);
  EXPECT_NE(a->seed(), b->seed());
  params.seed = static_cast<int64_t>(a->seed());
  EXPECT_EQ(draws(*a, noise(7), 50), draws(*make_sampler(params), noise(7), 50));
}

TEST(Sampling, ACloneHasTheStateButItsOwnStream) {
  SamplingParams params = neutral();
  params.repeat_penalty = 1.3f;
  params.dry_multiplier = 1;
  const auto row = noise(8);
  const auto original = make_sampler(params);
  draws(*original, row, 20);
  const auto twin = original->clone(5), other = original->clone(6);
  const auto third = original->clone(5);
  EXPECT_EQ(twin->seed(), 5u);
  ASSERT_TRUE(original->sample(row, nullptr).ok());
  const auto a = draws(*twin, row, 60);
  EXPECT_EQ(a, draws(*third, row, 60));
  EXPECT_NE(a, draws(*other, row, 60));
  ASSERT_TRUE(original->clone(9)->sample(row, nullptr).ok());
}

TEST(Sampling, DrawsFollowTheDistribution) {
  // Pearson's χ² with 9 degrees of freedom passes 33.7 by chance once in 10 000; the seeds are fixed.
  const std::vector<float> logits{2.0f, 1.0f, 0.5f, 3.0f, -1.0f, 0.0f, 2.5f, -2.0f, 1.5f, -0.5f};
  double sum = 0;
  for (const float l : logits) sum += std::exp(static_cast<double>(l));
  const auto row = padded(logits);
  for (const int64_t seed : {1, 2, 3, 1234567}) {
    SamplingParams params = neutral();
    params.seed = seed;
    const auto sampler = make_sampler(params);
    std::vector<int> counts(logits.size());
    constexpr int kDraws = 50'000;
    for (int i = 0; i < kDraws; ++i) ++counts.at(static_cast<std::size_t>(*sampler->sample(row, nullptr)));
    double chi2 = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double expected = kDraws * std::exp(static_cast<double>(logits[i])) / sum;
      chi2 += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    EXPECT_LT(chi2, 33.7) << "seed " << seed;
  }
}

TEST(Sampling, XtcActsWithItsProbability) {
  SamplingParams params = neutral();
  params.xtc_probability = 0.3f;
  params.xtc_threshold = 0.1f;
  const auto sampler = make_sampler(params);
  const auto row = padded({2, 2, 0});
  int n_cut = 0;
  constexpr int kDraws = 10'000;
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_TRUE(sampler->sample(row, nullptr).ok());
    n_cut += sampler->candidates().size() == 2;
  }
  EXPECT_NEAR(n_cut, 3000, 4.5 * std::sqrt(kDraws * 0.3 * 0.7));  // 4.5 standard deviations
}

// ---- rules on long rows, where the quick paths are taken

std::vector<float> long_row(uint32_t seed, std::size_t n) {
  std::mt19937 random(seed);
  std::vector<float> row(n);
  for (float& l : row) l = static_cast<float>(random() % 4000) / 200.0f;  // many ties
  return row;
}

TEST(SelectTop, AgreesWithASort) {
  for (const std::size_t n : {1u, 63u, 64u, 65u, 1000u, 20'000u}) {
    const auto row = long_row(static_cast<uint32_t>(n), n);
    std::vector<TokenId> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = static_cast<TokenId>(i);
    std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
      return row[static_cast<std::size_t>(a)] > row[static_cast<std::size_t>(b)];
    });
    for (const std::size_t k : {1u, 2u, 40u, 64u, 999u, 5000u}) {
      const auto top = row_logprobs(row, 0, k).top;
      ASSERT_EQ(top.size(), std::min(k, n));
      for (std::size_t i = 0; i < top.size(); ++i) ASSERT_EQ(top[i].id, order[i]) << "n " << n << " k " << k;
    }
  }
}

TEST(Sampling, TopPOfAFlatDistributionNeedsManyCandidates) {
  // All 261 tokens nearly equal: the sorted front has to grow beyond its first size.
  auto row = padded(std::vector<float>(261, 0.0f));
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = -1e-4f * static_cast<float>(i);
  SamplingParams params = neutral();
  params.top_p = 0.99f;
  const auto sampler = make_sampler(params);
  ASSERT_TRUE(sampler->sample(row, nullptr).ok());
  double total = 0;
  std::vector<double> p;
  for (const float l : row) total += std::exp(static_cast<double>(l));
  std::size_t n = 0;
  for (double cumulative = 0; cumulative < 0.99; ++n) cumulative += std::exp(static_cast<double>(row[n])) / total;
  EXPECT_EQ(sampler->candidates().size(), n);
  EXPECT_EQ(sampler->candidates()[n - 1].id, static_cast<TokenId>(n - 1));
}

TEST(Sampling, MinKeepBeatsEveryCut) {
  SamplingParams params = neutral();
  params.min_keep = 4;
  const auto row = padded({10, 0, 1, 2, 3, 4});
  for (const char* rule : {"top_p", "min_p", "typ_p", "xtc"}) {
    params.samplers = {rule};
    params.top_p = 0.1f;
    params.min_p = 0.9f;
    params.typical_p = 0.1f;
    params.xtc_probability = 1;
    const auto sampler = make_sampler(params);
    ASSERT_TRUE(sampler->sample(row, nullptr).ok());
    EXPECT_GE(sampler->candidates().size(), 4u) << rule;
  }
}

TEST(Sampling, TheListDecidesTheOrder) {
  // Penalties after top-k only reach what top-k left.
  SamplingParams params = neutral();
  params.samplers = {"top_k", "penalties"};
  params.top_k = 2;
  params.presence_penalty = 10;
  const auto row = padded({3, 2, 1});
  const auto sampler = make_sampler(params);
  sampler->accept(0);
  ASSERT_TRUE(sampler->sample(row, nullptr).ok());
  EXPECT_EQ(sampler->candidates()[0].id, 1);
  ASSERT_EQ(sampler->candidates().size(), 2u);
  params.samplers = {"penalties", "top_k"};
  const auto other = make_sampler(params);
  other->accept(0);
  ASSERT_TRUE(other->sample(row, nullptr).ok());
  EXPECT_FALSE(distribution(*other).contains(0));
  EXPECT_TRUE(distribution(*other).contains(2));
}

TEST(Sampling, GreedyHonoursWhatMayRemoveTheBest) {
  SamplingParams params = neutral();
  params.temperature = 0;
  params.top_k = 3;
  params.xtc_probability = 1;
  params.xtc_threshold = 0.15f;
  const auto sampler = make_sampler(params);
  EXPECT_EQ(*sampler->sample(padded({3, 2.5f, 2, 0}), nullptr), 2);
  EXPECT_EQ(sampler->candidates().size(), 1u);
  EXPECT_EQ(sampler->candidates()[0].p, 1.0f);
  params.xtc_probability = 0;
  EXPECT_EQ(*make_sampler(params)->sample(padded({1, 3, 3, 0}), nullptr), 1) << "of equals the smaller id";
}

TEST(Sampling, PenaltiesForgetWhatLeftTheWindow) {
  SamplingParams params = neutral();
  params.frequency_penalty = 1;
  params.penalty_last_n = 3;
  const auto sampler = make_sampler(params);
  for (const TokenId id : {0, 0, 1, 0, 2}) sampler->accept(id);  // window: 1 0 2
  const auto row = padded({0, 0, 0, 0});
  ASSERT_TRUE(sampler->sample(row, nullptr).ok());
  const auto p = distribution(*sampler);
  EXPECT_NEAR(p.at(0), p.at(1), 1e-7);
  EXPECT_NEAR(p.at(0), p.at(2), 1e-7);
  EXPECT_NEAR(p.at(3) / p.at(0), std::exp(1.0), 1e-5);
}

// ---- mirostat 1

TEST(Mirostat1, CutsWhereTheFormulaSays) {
  SamplingParams params = neutral();
  params.mirostat = 1;
  params.mirostat_tau = 1.5f;
  std::vector<float> logits;
  for (int i = 0; i < 200; ++i) logits.push_back(-1.3f * std::log(static_cast<float>(i + 1)));  // Zipf, exponent 1.3
  const auto sampler = make_sampler(params);
  ASSERT_TRUE(sampler->sample(padded(logits), nullptr).ok());
  // With an exact Zipf law ŝ = 1.3, so k = (0.3 · 2^3 / (1 − 261^−0.3))^(1/1.3).
  const double k = std::pow(0.3 * 8 / (1 - std::pow(261.0, -0.3)), 1 / 1.3);
  EXPECT_EQ(sampler->candidates().size(), static_cast<std::size_t>(k));
  const float p = sampler->candidates()[0].p;
  sampler->accept(0);
  // μ = 3 − 0.1 · (−log2 p − 1.5)
  const double mu = 3 - 0.1 * (-std::log2(p) - 1.5);
  ASSERT_TRUE(sampler->sample(padded(logits), nullptr).ok());
  const double next = std::pow(0.3 * std::exp2(mu) / (1 - std::pow(261.0, -0.3)), 1 / 1.3);
  EXPECT_EQ(sampler->candidates().size(), static_cast<std::size_t>(next));
}

TEST(Mirostat1, OddDistributionsLeaveAtLeastOne) {
  for (const auto& logits : std::vector<std::vector<float>>{{1}, {1, 1, 1, 1}, {50, -50}, std::vector<float>(261, 0)}) {
    SamplingParams params = neutral();
    params.mirostat = 1;
    const auto sampler = make_sampler(params);
    for (int i = 0; i < 20; ++i) {
      const auto id = sampler->sample(padded(logits), nullptr);
      ASSERT_TRUE(id.ok());
      sampler->accept(*id);
    }
  }
}

TEST(Mirostat, SurpriseTendsToTheTarget) {
  for (const int version : {1, 2}) {
    SamplingParams params = neutral();
    params.mirostat = version;
    params.mirostat_tau = 3;
    const auto sampler = make_sampler(params);
    const auto row = noise(11, 2);
    double sum = 0;
    for (int i = 0; i < 3000; ++i) {
      const auto id = sampler->sample(row, nullptr);
      ASSERT_TRUE(id.ok());
      if (i >= 1000) sum -= std::log2(distribution(*sampler).at(*id));
      sampler->accept(*id);
    }
    EXPECT_NEAR(sum / 2000, 3, 0.15) << "version " << version;
  }
}

// ---- log-probabilities

TEST(RowLogprobs, AreOfTheRawLogits) {
  const auto row = noise(9);
  double sum = 0;
  for (const float l : row) sum += std::exp(static_cast<double>(l));
  const auto result = row_logprobs(row, 100, 3);
  EXPECT_EQ(result.chosen.id, 100);
  EXPECT_NEAR(result.chosen.logprob, row[100] - std::log(sum), 1e-5);
  ASSERT_EQ(result.top.size(), 3u);
  EXPECT_EQ(result.top[0].logprob, row_logprobs(row, result.top[0].id, 0).chosen.logprob);
  EXPECT_GE(result.top[0].logprob, result.top[1].logprob);
  EXPECT_TRUE(row_logprobs(row, 1, 0).top.empty());
  EXPECT_EQ(row_logprobs(padded({0}), 5, 1).chosen.logprob, kMinusInfinity);
}

}  // namespace
}  // namespace hocket
