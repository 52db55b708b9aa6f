#include <gtest/gtest.h>

#include <functional>

#include "runtime/sampling_fixture.h"

namespace hocket {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct BadValue {
  const char* field;
  std::function<void(SamplingParams&)> set;
};

TEST(SamplingParams, BadValuesAreRefusedByName) {
  const std::vector<BadValue> cases{
      {"temperature", [](auto& p) { p.temperature = kNan; }},
      {"temperature", [](auto& p) { p.temperature = kInfinity; }},
      {"dynatemp_range", [](auto& p) { p.dynatemp_range = -0.1f; }},
      {"dynatemp_exponent", [](auto& p) { p.dynatemp_exponent = kNan; }},
      {"top_p", [](auto& p) { p.top_p = 1.01f; }},
      {"top_p", [](auto& p) { p.top_p = -0.01f; }},
      {"top_p", [](auto& p) { p.top_p = kNan; }},
      {"min_p", [](auto& p) { p.min_p = 2; }},
      {"typical_p", [](auto& p) { p.typical_p = -1; }},
      {"top_n_sigma", [](auto& p) { p.top_n_sigma = kNan; }},
      {"xtc_probability", [](auto& p) { p.xtc_probability = 1.5f; }},
      {"xtc_threshold", [](auto& p) { p.xtc_threshold = -0.5f; }},
      {"repeat_penalty", [](auto& p) { p.repeat_penalty = 0; }},
      {"repeat_penalty", [](auto& p) { p.repeat_penalty = kInfinity; }},
      {"frequency_penalty", [](auto& p) { p.frequency_penalty = kNan; }},
      {"presence_penalty", [](auto& p) { p.presence_penalty = kInfinity; }},
      {"repeat_last_n", [](auto& p) { p.penalty_last_n = -2; }},
      {"dry_multiplier", [](auto& p) { p.dry_multiplier = -1; }},
      {"dry_base", [](auto& p) { p.dry_base = 0.5f; }},
      {"dry_allowed_length", [](auto& p) { p.dry_allowed_length = 0; }},
      {"dry_penalty_last_n", [](auto& p) { p.dry_penalty_last_n = -2; }},
      {"dry_sequence_breakers", [](auto& p) { p.dry_sequence_breakers = {""}; }},
      {"dry_sequence_breakers", [](auto& p) { p.dry_sequence_breakers = {std::string(41, 'x')}; }},
      {"dry_sequence_breakers", [](auto& p) { p.dry_sequence_breakers.assign(65, "x"); }},
      {"mirostat", [](auto& p) { p.mirostat = 3; }},
      {"mirostat_tau", [](auto& p) { p.mirostat_tau = -1; }},
      {"mirostat_eta", [](auto& p) { p.mirostat_eta = kNan; }},
      {"min_keep", [](auto& p) { p.min_keep = -1; }},
      {"logit_bias", [](auto& p) { p.logit_bias = {{-1, 0}}; }},
      {"logit_bias", [](auto& p) { p.logit_bias = {{261, 0}}; }},
      {"logit_bias", [](auto& p) { p.logit_bias = {{1, kNan}}; }},
      {"logit_bias", [](auto& p) { p.logit_bias = {{1, kInfinity}}; }},
      {"samplers", [](auto& p) { p.samplers = {"top_k", "tail_free"}; }},
      {"samplers", [](auto& p) { p.samplers = {"top_k", "top_k"}; }},
  };
  for (const BadValue& item : cases) {
    SamplingParams params;
    item.set(params);
    const auto sampler = Sampler::create(params, sampling_tokenizer(), sampling_tokenizer().size(), 100);
    ASSERT_FALSE(sampler.ok()) << item.field;
    EXPECT_EQ(sampler.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(sampler.error().param, item.field);
    EXPECT_FALSE(sampler.error().message.empty());
  }
}

TEST(SamplingParams, DefaultsAndExtremesWork) {
  EXPECT_TRUE(make_sampler({}));
  SamplingParams params;
  params.top_k = 1'000'000;
  params.repeat_penalty = 1e-30f;
  params.frequency_penalty = 1e30f;
  params.dry_multiplier = 1e30f;
  params.dry_base = 1e30f;
  params.temperature = 1e-30f;
  params.penalty_last_n = -1;
  const auto sampler = make_sampler(params);
  ASSERT_TRUE(sampler);
  for (int i = 0; i < 100; ++i) {
    const auto id = sampler->sample(padded({1, 2, 3, -4}), nullptr);
    if (!id) {
      EXPECT_EQ(id.error().code, ErrorCode::kInternal);
      break;
    }
    sampler->accept(*id);
  }
}

}  // namespace
}  // namespace hocket
