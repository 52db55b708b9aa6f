#include "runtime/dry.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/sampling_fixture.h"

namespace hocket {
namespace {

// L of each token, by comparing every pair of positions.
std::map<TokenId, std::size_t> naive_lengths(const std::vector<TokenId>& history, std::size_t window,
                                             std::size_t since_breaker) {
  const std::size_t begin = history.size() > window ? history.size() - window : 0;
  std::map<TokenId, std::size_t> lengths;
  for (std::size_t end = begin + 1; end < history.size(); ++end) {  // the earlier occurrence ends before `end`
    std::size_t length = 0;
    while (length < since_breaker && end - begin > length &&
           history[end - 1 - length] == history[history.size() - 1 - length]) {
      ++length;
    }
    lengths[history[end]] = std::max(lengths[history[end]], length);
  }
  return lengths;
}

TEST(Dry, AgreesWithANaiveSearch) {
  const uint32_t seed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    SamplingParams params = neutral();
    params.dry_multiplier = 0.5f;
    params.dry_base = 1.2f;
    params.dry_allowed_length = 1 + static_cast<int>(random() % 3);
    params.dry_penalty_last_n = static_cast<int>(random() % 40);
    params.dry_sequence_breakers = {"d"};
    params.samplers = {"dry"};
    const auto sampler = make_sampler(params);
    std::vector<TokenId> history;
    std::size_t since_breaker = 0;
    for (std::size_t i = random() % 60; i > 0; --i) {
      const TokenId id = "abcabcabcabcd"[random() % 13];
      history.push_back(id);
      sampler->accept(id);
      since_breaker = id == 'd' ? 0 : since_breaker + 1;
    }
    auto row = padded({});
    for (TokenId id = 'a'; id <= 'e'; ++id) row[static_cast<std::size_t>(id)] = 1;
    ASSERT_TRUE(sampler->sample(row, nullptr).ok());
    const auto lengths = naive_lengths(history, static_cast<std::size_t>(params.dry_penalty_last_n), since_breaker);
    const auto p = distribution(*sampler);
    for (TokenId id = 'a'; id <= 'd'; ++id) {
      const auto found = lengths.find(id);
      const int length = found == lengths.end() ? 0 : static_cast<int>(found->second);
      const double penalty =
          length >= params.dry_allowed_length ? 0.5 * std::pow(1.2, length - params.dry_allowed_length) : 0;
      ASSERT_NEAR(p.at(id) / p.at('e'), std::exp(-penalty), 1e-4) << "round " << round << " token " << id;
    }
  }
}

TEST(Dry, ABreakerMayReachOverTokens) {
  SamplingParams params = neutral();
  params.dry_multiplier = 1;
  params.dry_sequence_breakers = {"xy"};
  params.samplers = {"dry"};
  auto row = padded({});
  row['c'] = row['z'] = 0;
  const auto ratio = [&](std::string_view text) {
    const auto sampler = make_sampler(params);
    for (const char c : text) sampler->accept(c);
    EXPECT_TRUE(sampler->sample(row, nullptr).ok());
    const auto p = distribution(*sampler);
    return p.at('c') / p.at('z');
  };
  EXPECT_LT(ratio("abc-ab"), 0.5f);
  EXPECT_LT(ratio("axbc-axb"), 0.5f) << "half a breaker breaks nothing";
  EXPECT_NEAR(ratio("axybc-axyb"), 1, 1e-6) << "one token after the breaker is below the allowed length";
  EXPECT_LT(ratio("axyabc-axyab"), 0.5f);
}

TEST(Dry, ALongRepetitionStaysFinite) {
  SamplingParams params = neutral();
  params.dry_multiplier = 1e30f;
  params.samplers = {"dry"};
  const auto sampler = make_sampler(params);
  for (int i = 0; i < 3000; ++i) sampler->accept('a');
  auto row = padded({});
  row['a'] = row['b'] = 0;
  EXPECT_EQ(*sampler->sample(row, nullptr), 'b');
  row['b'] = kMinusInfinity;
  EXPECT_EQ(*sampler->sample(row, nullptr), 'a') << "the only token is still drawn";
}

}  // namespace
}  // namespace hocket
