// engine/model_bench.h: how fast a model evaluates prompts and generates tokens here.
//
// A case is a prompt of n_prompt tokens, or n_gen tokens one at a time, after n_depth tokens that are not timed. Each
// is run once to warm up and then `repetitions` times. Tokens are arbitrary but the same in every run.
//
// Threads  one bench at a time.
// Errors   those of loading and of steps.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/model_session.h"

namespace hocket {

struct BenchOptions {
  ModelSessionOptions model;  // runner: n_ctx is set by the bench
  std::vector<std::size_t> n_prompt{512};
  std::vector<std::size_t> n_gen{64};
  std::vector<std::size_t> n_depth{0};
  std::vector<std::size_t> n_parallel{1};  // sequences that generate side by side; prompts are measured alone
  std::vector<int> n_threads{0};           // 0: the physical cores
  int repetitions = 5;
};

struct BenchResult {
  std::size_t n_prompt = 0, n_gen = 0, n_depth = 0, n_parallel = 1;
  int n_threads = 0;
  std::string test_time;           // start, ISO 8601 UTC
  std::vector<double> samples_ns;  // duration of each run

  std::size_t n_tokens() const { return n_prompt + n_gen * n_parallel; }  // of all sequences
  std::vector<double> samples_ts() const;                                 // tokens per second of each run
};

struct Spread {
  double mean = 0, median = 0, stddev = 0;
};
Spread spread_of(std::vector<double> samples);

struct BenchReport {
  ModelSummary model;
  std::string model_path;
  RunnerOptions runner;
  bool use_mmap = true;
  std::vector<BenchResult> results;
};

// `on_result` hears each case as it ends.
Result<BenchReport> run_bench(const BenchOptions& options,
                              const std::function<void(const BenchReport&, const BenchResult&)>& on_result);

// One object per case, with llama-bench's field names and `median_ts`.
Json bench_json(const BenchReport& report);

}  // namespace hocket
