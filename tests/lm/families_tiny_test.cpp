// Families whose equations are those of another one with some settings: with the same synthetic weights, which follow
// from names and shapes, the logits must be the same, and different where a setting makes a difference.
#include <gtest/gtest.h>

#include "lm/language_model.h"
#include "lm/runner.h"
#include "support/exact_runner.h"
#include "support/numbers.h"
#include "support/tiny_models.h"

namespace hocket::test {
namespace {

using Settings = std::vector<std::pair<std::string, MetadataValue>>;

// Logits of a few tokens from `arch` with the hyper-parameters of the tiny llama and these.
std::vector<float> logits(const std::string& arch, const Settings& settings) {
  Metadata metadata;
  const Metadata base = *tiny_metadata("llama");
  for (const auto& [key, value] : base.entries())
    metadata.set(key.starts_with("llama.") ? arch + key.substr(5) : key, value);
  metadata.set("general.architecture", arch);
  for (const auto& [name, value] : settings) metadata.set(arch + "." + name, value);
  const auto model = LanguageModel::synthetic(metadata, 7, kTinyVocab);
  EXPECT_TRUE(model.ok()) << model.error().message;
  const auto runner = LmRunner::create(**model, exact_options());
  EXPECT_TRUE(runner.ok());
  std::vector<BatchToken> batch;
  for (const int32_t id : {5, 80, 33, 5, 61, 2, 94, 17, 40, 41, 42, 7}) batch.push_back({id, 0, false});
  batch.back().output = true;
  EXPECT_TRUE((*runner)->step(batch).ok());
  const auto row = (*runner)->output(0);
  return {row.begin(), row.end()};
}

const Settings kExperts{
    {"expert_count", int64_t{6}}, {"expert_used_count", int64_t{2}}, {"expert_feed_forward_length", int64_t{32}}};

Settings operator+(Settings a, const Settings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Families, GraniteIsLlamaWithFactors) {
  const auto llama = logits("llama", {});
  EXPECT_EQ(logits("granite", {}), llama);
  for (const char* name : {"embedding_scale", "residual_scale"})
    EXPECT_GT(nmse(logits("granite", {{name, 0.5}}), llama), 1e-3) << name;
  auto halved = llama;
  for (float& v : halved) v *= 0.5f;
  EXPECT_EQ(logits("granite", {{"logit_scale", 2.0}}), halved);
}

TEST(Families, MixtralIsLlamaWithExperts) {
  const auto mixtral = logits("llama", kExperts);
  EXPECT_EQ(logits("granitemoe", kExperts), mixtral);
  EXPECT_GT(nmse(mixtral, logits("llama", {})), 1e-3);
  // Files without a size of its own for experts use that of the feed-forward.
  EXPECT_EQ(logits("llama", {{"expert_count", int64_t{6}}, {"expert_used_count", int64_t{2}}}),
            logits("llama", kExperts + Settings{{"expert_feed_forward_length", int64_t{96}}}));
  // The same routing, written as keys of a family that has them.
  EXPECT_EQ(logits("bailingmoe", kExperts + Settings{{"expert_weights_norm", true}}), mixtral);
  EXPECT_EQ(logits("deepseek", kExperts + Settings{{"expert_weights_norm", true}}), mixtral);
}

TEST(Families, SmolLm3LeavesEveryFourthLayerUnrotated) {
  EXPECT_EQ(logits("smollm3", {}), logits("llama", {}));  // three layers
  const Settings four{{"block_count", int64_t{4}}};
  EXPECT_GT(nmse(logits("smollm3", four), logits("llama", four)), 1e-6);
}

TEST(Families, Gemma2CapsScoresAndLogits) {
  const auto with = [](double scores, double final) {
    return logits("gemma2", {{"attn_logit_softcapping", scores}, {"final_logit_softcapping", final}});
  };
  EXPECT_EQ(logits("gemma2", {}), with(50, 30)) << "files without the keys have these caps";
  EXPECT_GT(nmse(with(0.1, 30), with(50, 30)), 1e-6);
  for (const float v : with(50, 0.5)) EXPECT_LE(std::abs(v), 0.5f);
}

TEST(Families, Mistral3IsLlamaWhoseQueriesGrow) {
  const auto llama = logits("llama", {});
  EXPECT_EQ(logits("mistral3", {}), llama);
  const auto with = [](double scale, int64_t length) {
    return logits("mistral3",
                  {{"attention.temperature_scale", scale}, {"rope.scaling.original_context_length", length}});
  };
  EXPECT_EQ(with(0.5, 12), llama) << "twelve tokens are at positions before the first step";
  EXPECT_GT(nmse(with(0.5, 11), llama), 1e-6);
}

}  // namespace
}  // namespace hocket::test
