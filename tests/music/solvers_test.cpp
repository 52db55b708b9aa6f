#include <gtest/gtest.h>

#include <random>

#include "music/goldens.h"
#include "music/solvers/guidance.h"
#include "music/solvers/noise.h"
#include "music/solvers/sampler.h"
#include "music/solvers/schedule.h"

namespace hocket {
namespace {

using test::Golden;
using test::relative_error;
using test::value_or_fail;

TEST(Noise, IsTheGoldenForEverySeed) {
  for (const uint64_t seed : {0ull, 42ull, 1'234'567ull, 4'294'967'295ull}) {
    const Golden golden("noise-" + std::to_string(seed));
    const auto before = golden.floats("float"), rounded = golden.floats("bf16");
    for (std::size_t k = 0; k < before.size(); ++k)
      EXPECT_NEAR(normal_at(seed, k), before[k], 2e-6f * std::max(1.0f, std::abs(before[k]))) << seed << " " << k;
    EXPECT_EQ(make_noise(seed, rounded.size()), rounded) << seed;
  }
}

TEST(Noise, HasTheKnownWordsAndSums) {
  EXPECT_EQ(philox(0, 0), (std::array<uint32_t, 4>{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(philox(4'294'967'295ull, 0), (std::array<uint32_t, 4>{0xf60ba7e1u, 0xfb0bd7a0u, 0xc70cbd2du, 0x7dad399cu}));
  const auto noise = make_noise(42, 48'000);
  double sum = 0, squares = 0;
  for (const float value : noise) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(sum, -330.580834, 0.01);
  EXPECT_NEAR(squares, 47'582.456475, 0.01);
  EXPECT_EQ(noise[27'999], 1.75f);
}

TEST(Schedule, IsTheGolden) {
  const Golden golden("schedules");
  const struct {
    const char* name;
    int steps;
    float shift;
  } rows[] = {{"s8_3", 8, 3},        {"s50_1", 50, 1}, {"s4_3", 4, 3},
              {"s10_1.5", 10, 1.5f}, {"s1_3", 1, 3},   {"s7_2.25", 7, 2.25f}};
  for (const auto& row : rows)
    EXPECT_LE(relative_error(make_schedule(row.steps, row.shift), golden.floats(row.name)), 1e-7) << row.name;
}

TEST(Schedule, ParsesTimesAndRefusesTooFew) {
  EXPECT_EQ(parse_timesteps("0.97,0.7, 0.4,0.1,0"), (std::vector<float>{0.97f, 0.7f, 0.4f, 0.1f}));
  EXPECT_EQ(parse_timesteps("1 0.5 nonsense 0.2"), (std::vector<float>{1.0f}));
  EXPECT_FALSE(parse_timesteps("0.5"));
  EXPECT_FALSE(parse_timesteps("nan,inf"));
  EXPECT_FALSE(parse_timesteps(""));
}

TEST(Guidance, IsTheGoldenOverThreeSteps) {
  const Golden golden("apg");
  ProjectedGuidance guidance(64);
  for (int step = 0; step < 3; ++step) {
    const std::string i = std::to_string(step);
    const auto guided = guidance.apply(golden.floats("cond" + i), golden.floats("uncond" + i), 3.5f);
    EXPECT_LE(relative_error(guided, golden.floats("v" + i)), golden.tolerance("v" + i)) << step;
  }
}

TEST(Guidance, OfOneIsTheConditionalVelocity) {
  ProjectedGuidance guidance(2);
  const std::vector<float> cond{1, 2, 3, 4}, uncond{0, 1, -1, 2};
  EXPECT_EQ(guidance.apply(cond, uncond, 1.0f), cond);
}

TEST(Wavelet, IsTheGoldenForOddLengths) {
  const Golden golden("dcw-odd");
  for (const char* name : {"low", "high", "double", "pix"}) {
    auto x = golden.floats("x");
    const WaveletCorrection correction{*parse_wavelet_mode(name), 0.2f, 0.1f};
    correct_step(x, golden.floats("v"), 64, golden.params()["t"], golden.params()["t_next"], correction);
    EXPECT_LE(relative_error(x, golden.floats(name)), golden.tolerance(name)) << name;
  }
  EXPECT_FALSE(parse_wavelet_mode("sideways"));
}

TEST(Sampler, FollowsEveryGoldenTrajectoryWithItsVelocities) {
  for (const char* name :
       {"sample-euler", "sample-sde", "sample-dpm3m", "sample-stork4", "sample-guided", "sample-dcw-low",
        "sample-dcw-high", "sample-dcw-double", "sample-dcw-pix", "sample-custom", "sample-cover"}) {
    const Golden golden(name);
    const auto& params = golden.params();
    SamplerOptions options;
    options.schedule = golden.floats("schedule");
    options.solver = *parse_solver(params.value("solver", "euler"));
    options.guidance = params.value("guidance", 1.0f);
    options.wavelet = {*parse_wavelet_mode(params.value("dcw_mode", "low")), params.value("dcw_scaler", 0.0f),
                       params.value("dcw_high", 0.0f)};
    options.seeds = params["seeds"].get<std::vector<uint64_t>>();
    const auto velocity = [&](std::span<const float>, float, std::size_t k) -> Result<std::vector<float>> {
      const std::string step = "step" + std::to_string(k);
      if (options.guidance <= 1) return golden.floats(step + "_vt");
      auto both = golden.floats(step + "_vt_cond");
      const auto uncond = golden.floats(step + "_vt_uncond");
      both.insert(both.end(), uncond.begin(), uncond.end());
      return both;
    };
    std::size_t n_steps = 0;
    const auto on_step = [&](std::size_t k, std::span<const float> v, std::span<const float> x) {
      const std::string step = "step" + std::to_string(k);
      EXPECT_LE(relative_error({v.begin(), v.end()}, golden.floats(step + "_vt")), 1e-5) << name << step;
      if (golden.has(step + "_xt")) {
        EXPECT_LE(relative_error({x.begin(), x.end()}, golden.floats(step + "_xt")), 1e-5) << name << step;
      }
      ++n_steps;
    };
    const auto x0 = value_or_fail(sample_latents(options, golden.floats("start"), velocity, on_step, CancelToken()));
    EXPECT_LE(relative_error(x0, golden.floats("x0")), 1e-5) << name;
    EXPECT_EQ(n_steps, options.schedule.size());
  }
}

TEST(Sampler, ConstantVelocityLeadsStraightWithEveryDeterministicSolver) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> start(2 * 64 * 10), v(start.size());
  for (float& value : start) value = normal(random);
  for (float& value : v) value = normal(random);
  for (const auto solver : {SolverKind::kEuler, SolverKind::kDpm3m, SolverKind::kStork4}) {
    SamplerOptions options;
    options.schedule = {0.97f, 0.7f, 0.65f, 0.2f};
    options.solver = solver;
    options.seeds = {1, 2};
    const auto x0 = value_or_fail(sample_latents(
        options, start, [&](auto, float, std::size_t) -> Result<std::vector<float>> { return v; }, {}, CancelToken()));
    std::vector<float> expected = start;
    for (std::size_t i = 0; i < v.size(); ++i) expected[i] -= v[i] * 0.97f;
    EXPECT_LE(relative_error(x0, expected), 1e-5);
  }
}

TEST(Sampler, Stork4IsExactForVelocitiesLinearInTime) {
  const std::vector<float> schedule{1.0f, 0.8f, 0.55f, 0.3f};
  auto solver = make_solver(SolverKind::kStork4, 0);
  std::vector<float> x{0.0f};
  const auto velocity = [](float t) { return std::vector<float>{2.0f - 3.0f * t}; };
  const auto integral = [](float from, float to) { return 2 * (from - to) - 1.5f * (from * from - to * to); };
  for (std::size_t k = 0; k + 1 < schedule.size(); ++k) {
    const float before = x[0];
    solver->advance(x, velocity(schedule[k]), schedule[k], schedule[k + 1], k);
    if (k > 0) {
      EXPECT_NEAR(x[0], before - integral(schedule[k], schedule[k + 1]), 1e-5f) << k;
    }
  }
}

TEST(Sampler, StopsBeforeTheNextStepAndPassesErrorsOn) {
  SamplerOptions options;
  options.schedule = make_schedule(8, 3);
  options.seeds = {1};
  const CancelToken cancel;
  std::size_t n = 0;
  const auto stopped = sample_latents(
      options, std::vector<float>(64),
      [&](std::span<const float> x, float, std::size_t) -> Result<std::vector<float>> {
        if (++n == 3) cancel.cancel();
        return std::vector<float>(x.size());
      },
      {}, cancel);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(n, 3u);
  const auto failed = sample_latents(
      options, std::vector<float>(64),
      [](std::span<const float> x, float, std::size_t) -> Result<std::vector<float>> {
        return std::vector<float>(x.size(), std::nanf(""));
      },
      {}, CancelToken());
  EXPECT_FALSE(failed.ok());
}

}  // namespace
}  // namespace hocket
