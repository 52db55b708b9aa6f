// The chain against probabilities computed in double precision from the definitions (tests/data/runtime/sampler.json).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/sampling_fixture.h"

namespace hocket {
namespace {

using nlohmann::json;

const json& golden() {
  static const json value = json::parse(std::ifstream(HOCKET_TEST_DATA "/runtime/sampler.json"));
  return value;
}

float number(const json& value) {
  return value.is_string() ? kMinusInfinity : value.get<float>();
}

void add_step(const json& step, SamplingParams& p) {
  const std::string kind = step["kind"];
  const auto use = [&](const char* name) { p.samplers.emplace_back(name); };
  if (step.contains("min_keep")) p.min_keep = step["min_keep"];
  if (kind == "logit_bias") {
    for (const json& row : step["bias"]) p.logit_bias.push_back({row[0].get<TokenId>(), number(row[1])});
  } else if (kind == "penalties") {
    use("penalties");
    p.penalty_last_n = step["last_n"];
    p.repeat_penalty = step["repeat"];
    p.frequency_penalty = step["frequency"];
    p.presence_penalty = step["presence"];
  } else if (kind == "dry") {
    use("dry");
    p.dry_multiplier = step["multiplier"];
    p.dry_base = step["base"];
    p.dry_allowed_length = step["allowed_length"];
    p.dry_penalty_last_n = step["last_n"];
    p.dry_sequence_breakers = step["breakers"].get<std::vector<std::string>>();
  } else if (kind == "top_n_sigma") {
    use("top_n_sigma");
    p.top_n_sigma = step["n"];
  } else if (kind == "top_k") {
    use("top_k");
    p.top_k = step["k"];
  } else if (kind == "typical") {
    use("typ_p");
    p.typical_p = step["p"];
  } else if (kind == "top_p") {
    use("top_p");
    p.top_p = step["p"];
  } else if (kind == "min_p") {
    use("min_p");
    p.min_p = step["p"];
  } else if (kind == "xtc") {
    use("xtc");
    p.xtc_probability = step["probability"];
    p.xtc_threshold = step["threshold"];
  } else if (kind == "temp") {
    use("temperature");
    p.temperature = step["t"];
  } else if (kind == "temp_ext") {
    use("temperature");
    p.temperature = step["t"];
    p.dynatemp_range = step["range"];
    p.dynatemp_exponent = step["exponent"];
  } else if (kind == "mirostat_v2") {
    p.mirostat = 2;
    p.mirostat_tau = step["tau"];
    p.mirostat_eta = step["eta"];
  } else {
    ADD_FAILURE() << "unknown step " << kind;
  }
}

void expect_distribution(const Sampler& sampler, const json& expected) {
  const auto found = distribution(sampler);
  EXPECT_EQ(found.size(), expected.size());
  for (const json& row : expected) {
    const auto at = found.find(row[0].get<TokenId>());
    if (at == found.end()) {
      ADD_FAILURE() << "token " << row[0] << " is missing";
    } else {
      EXPECT_NEAR(at->second, row[1].get<double>(), 1e-5) << "token " << row[0];
    }
  }
  float before = 2;
  for (const Candidate& c : sampler.candidates()) {
    EXPECT_LE(c.p, before) << "candidates() must be sorted";
    before = c.p;
  }
}

TEST(SamplingGolden, EveryChainGivesTheSameDistribution) {
  ASSERT_EQ(golden()["cases"].size(), 225u);
  for (const json& item : golden()["cases"]) {
    SCOPED_TRACE(item["name"].get<std::string>());
    SamplingParams params = neutral();
    params.samplers.clear();
    for (const json& step : item["chain"]) add_step(step, params);
    const auto sampler = make_sampler(params);
    ASSERT_TRUE(sampler);
    if (item.contains("history")) {
      for (const TokenId id : item["history"]) sampler->accept(id);
    }
    const auto logits = golden()["vectors"][item["vector"].get<std::string>()].get<std::vector<float>>();
    const auto drawn = sampler->sample(padded(logits), nullptr);
    ASSERT_TRUE(drawn.ok()) << drawn.error().message;
    EXPECT_TRUE(distribution(*sampler).contains(*drawn));
    expect_distribution(*sampler, item["expected"]);
  }
}

TEST(SamplingGolden, MirostatFollowsTheSameStates) {
  for (const json& run : golden()["mirostat_v2_sequences"]) {
    SamplingParams params = neutral();
    params.mirostat = 2;
    params.mirostat_tau = run["tau"];
    params.mirostat_eta = run["eta"];
    const auto sampler = make_sampler(params);
    ASSERT_TRUE(sampler);
    for (std::size_t i = 0; i < run["steps"].size(); ++i) {
      SCOPED_TRACE(testing::Message() << "tau " << run["tau"] << " step " << i);
      const auto logits = golden()["vectors"][run["vectors"][i].get<std::string>()].get<std::vector<float>>();
      ASSERT_TRUE(sampler->sample(padded(logits), nullptr).ok());
      expect_distribution(*sampler, run["steps"][i]["dist"]);
      sampler->accept(run["steps"][i]["drawn"].get<TokenId>());
    }
  }
}

}  // namespace
}  // namespace hocket
