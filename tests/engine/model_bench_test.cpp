#include "engine/model_bench.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hocket {
namespace {

TEST(Spread, MeanMedianAndDeviation) {
  const Spread odd = spread_of({5, 1, 3});
  EXPECT_DOUBLE_EQ(odd.mean, 3);
  EXPECT_DOUBLE_EQ(odd.median, 3);
  EXPECT_DOUBLE_EQ(odd.stddev, 2);
  EXPECT_DOUBLE_EQ(spread_of({4, 1, 2, 3}).median, 2.5);
  EXPECT_DOUBLE_EQ(spread_of({7}).stddev, 0);
  EXPECT_DOUBLE_EQ(spread_of({}).mean, 0);
}

TEST(BenchJson, HasTheFieldsThatScriptsRead) {
  BenchReport report;
  report.model.arch = "llama";
  report.model.quantisation = "Q4_1";
  BenchResult result;
  result.n_prompt = 100;
  result.n_threads = 2;
  result.test_time = "2026-01-01T00:00:00Z";
  result.samples_ns = {1e9, 2e9, 1e9};
  report.results.push_back(result);
  const Json rows = bench_json(report);
  ASSERT_EQ(rows.size(), 1u);
  const Json& row = rows[0];
  for (const char* name : {"build_commit", "build_number",   "cpu_info",   "backends",   "model_filename", "model_type",
                           "model_size",   "model_n_params", "n_batch",    "n_threads",  "type_k",         "type_v",
                           "n_prompt",     "n_gen",          "n_depth",    "test_time",  "avg_ns",         "stddev_ns",
                           "avg_ts",       "stddev_ts",      "samples_ns", "samples_ts", "median_ts"}) {
    EXPECT_TRUE(row.contains(name)) << name;
  }
  EXPECT_DOUBLE_EQ(row["median_ts"].get<double>(), 100);
  EXPECT_NEAR(row["avg_ts"].get<double>(), 250.0 / 3, 1e-9);
  EXPECT_EQ(row["samples_ns"].size(), 3u);
}

TEST(Bench, NothingToMeasureIsRefused) {
  BenchOptions options;
  options.n_prompt = {0};
  options.n_gen = {0};
  const auto report = run_bench(options, nullptr);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace hocket
