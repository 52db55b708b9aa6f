#include "engine/sampling_defaults.h"

#include <gtest/gtest.h>

namespace hocket {
namespace {

TEST(SamplingDefaults, TheFileBeatsTheBuiltInValues) {
  Metadata metadata;
  metadata.set("general.sampling.temp", 0.25);
  metadata.set("general.sampling.top_k", int64_t{17});
  metadata.set("general.sampling.penalty_repeat", 1.25);
  metadata.set("general.sampling.penalty_last_n", int64_t{128});
  const auto params = model_sampling(metadata);
  ASSERT_TRUE(params.ok());
  EXPECT_FLOAT_EQ(params->temperature, 0.25f);
  EXPECT_EQ(params->top_k, 17);
  EXPECT_FLOAT_EQ(params->repeat_penalty, 1.25f);
  EXPECT_EQ(params->penalty_last_n, 128);
  EXPECT_FLOAT_EQ(params->top_p, SamplingParams().top_p);
}

TEST(SamplingDefaults, AWrongTypeInTheFileNamesTheKey) {
  Metadata metadata;
  metadata.set("general.sampling.top_k", std::string("many"));
  const auto params = model_sampling(metadata);
  ASSERT_FALSE(params.ok());
  EXPECT_EQ(params.error().code, ErrorCode::kBadModel);
  EXPECT_EQ(params.error().param, "general.sampling.top_k");
}

TEST(SamplingDefaults, RequestBeatsServerBeatsFile) {
  SamplingParams file;
  file.temperature = 0.1f;
  file.top_k = 1;
  file.min_p = 0.3f;
  GenerationParams server;
  server.temperature = 0.2f;
  server.top_k = 2;
  GenerationParams request;
  request.temperature = 0.3f;
  request.logit_bias = {{5, 1.0f}};
  const SamplingParams got = apply_params(apply_params(file, server), request);
  EXPECT_FLOAT_EQ(got.temperature, 0.3f);
  EXPECT_EQ(got.top_k, 2);
  EXPECT_FLOAT_EQ(got.min_p, 0.3f);
  ASSERT_EQ(got.logit_bias.size(), 1u);
  EXPECT_EQ(got.logit_bias[0].id, 5);
}

}  // namespace
}  // namespace hocket
