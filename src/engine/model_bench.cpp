#include "engine/model_bench.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "compute/device.h"
#include "engine/build_info.h"
#include "runtime/generation.h"

namespace hocket {
namespace {

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::vector<TokenId> arbitrary_tokens(std::size_t n, std::size_t n_vocab) {
  std::vector<TokenId> tokens(n);
  uint64_t state = 0x2545F4914F6CDD1Dull;
  for (TokenId& id : tokens) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    id = static_cast<TokenId>(state % n_vocab);
  }
  return tokens;
}

// Runs one case once; the duration of its timed part.
Result<double> run_once(LmRunner& runner, const BenchResult& test) {
  const std::vector<TokenId> tokens =
      arbitrary_tokens(test.n_depth + test.n_prompt + test.n_gen, runner.model().n_vocab());
  const std::span<const TokenId> all(tokens);
  for (std::size_t seq = 0; seq < runner.options().n_seqs; ++seq) runner.memory().clear(static_cast<SeqId>(seq));
  for (std::size_t seq = 0; seq < test.n_parallel && test.n_depth > 0; ++seq)
    TRY(prefill(runner, static_cast<SeqId>(seq), all.first(test.n_depth), {}, CancelToken()));
  const auto start = Clock::now();
  if (test.n_prompt > 0) {
    TRY(prefill(runner, 0, all.first(test.n_depth + test.n_prompt), {}, CancelToken()));
  }
  std::vector<BatchToken> step(test.n_parallel);
  for (std::size_t i = 0; i < test.n_gen; ++i) {
    for (std::size_t seq = 0; seq < step.size(); ++seq)
      step[seq] = {tokens[test.n_depth + test.n_prompt + i], static_cast<SeqId>(seq), true};
    TRY(runner.step(step));
  }
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

}  // namespace

std::vector<double> BenchResult::samples_ts() const {
  std::vector<double> out;
  for (const double ns : samples_ns) out.push_back(1e9 * static_cast<double>(n_tokens()) / ns);
  return out;
}

Spread spread_of(std::vector<double> samples) {
  Spread out;
  if (samples.empty()) return out;
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  out.median = n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  for (const double x : samples) out.mean += x / static_cast<double>(n);
  double squares = 0;
  for (const double x : samples) squares += (x - out.mean) * (x - out.mean);
  out.stddev = n > 1 ? std::sqrt(squares / static_cast<double>(n - 1)) : 0;
  return out;
}

Result<BenchReport> run_bench(const BenchOptions& options,
                              const std::function<void(const BenchReport&, const BenchResult&)>& on_result) {
  std::vector<BenchResult> cases;
  std::size_t n_ctx = 1, n_seqs = 1;
  for (const std::size_t depth : options.n_depth) {
    for (const std::size_t n : options.n_prompt) {
      if (n > 0) cases.push_back({n, 0, depth, 1, 0, {}, {}});
    }
    for (const std::size_t n : options.n_gen) {
      for (const std::size_t n_parallel : options.n_parallel)
        if (n > 0) cases.push_back({0, n, depth, std::max<std::size_t>(1, n_parallel), 0, {}, {}});
    }
  }
  if (cases.empty()) return Error(ErrorCode::kInvalid, "there is nothing to measure: all sizes are 0", "n_prompt");
  for (const BenchResult& test : cases) {
    n_ctx = std::max(n_ctx, test.n_depth + test.n_prompt + test.n_gen);
    n_seqs = std::max(n_seqs, test.n_parallel);
  }

  ModelSessionOptions model = options.model;
  model.runner.n_ctx = n_ctx;
  model.runner.n_seqs = n_seqs;
  model.runner.n_cells = n_ctx * n_seqs;
  model.runner.n_threads = options.n_threads.empty() ? 0 : options.n_threads.front();
  TRY_ASSIGN(const auto session, ModelSession::open(model));
  BenchReport report;
  report.model = session->model().summary();
  report.model_path = model.path;
  report.use_mmap = model.use_mmap;
  for (std::size_t t = 0; t < std::max<std::size_t>(options.n_threads.size(), 1); ++t) {
    if (t > 0) {
      model.runner.n_threads = options.n_threads[t];
      TRY(session->set_runner(model.runner));
    }
    report.runner = session->runner().options();
    for (BenchResult test : cases) {
      test.n_threads = report.runner.n_threads > 0 ? report.runner.n_threads : physical_cores();
      TRY_ASSIGN([[maybe_unused]] const double warm_up, run_once(session->runner(), test));
      test.test_time = utc_now();
      for (int r = 0; r < options.repetitions; ++r) {
        TRY_ASSIGN(const double ns, run_once(session->runner(), test));
        test.samples_ns.push_back(ns);
      }
      report.results.push_back(test);
      if (on_result) on_result(report, test);
    }
  }
  return report;
}

Json bench_json(const BenchReport& report) {
  const BuildInfo& build = build_info();
  const std::vector<DeviceInfo> devices = list_devices();
  const auto cpu = std::find_if(devices.begin(), devices.end(), [](const DeviceInfo& d) { return d.kind == "cpu"; });
  Json out = Json::array();
  for (const BenchResult& test : report.results) {
    const Spread ns = spread_of(test.samples_ns);
    const Spread ts = spread_of(test.samples_ts());
    std::vector<int64_t> whole_ns;
    for (const double x : test.samples_ns) whole_ns.push_back(std::llround(x));
    Json row;
    row["build_commit"] = build.commit;
    row["build_number"] = build.build_number;
    row["cpu_info"] = cpu == devices.end() ? "" : cpu->description;
    row["gpu_info"] = "";
    row["backends"] = "CPU";
    row["model_filename"] = report.model_path;
    row["model_type"] = fmt::format("{} {}", report.model.arch, report.model.quantisation);
    row["model_size"] = report.model.weight_bytes;
    row["model_n_params"] = report.model.n_params;
    row["n_batch"] = report.runner.n_batch;
    row["n_ubatch"] = report.runner.n_batch;
    row["n_threads"] = test.n_threads;
    row["type_k"] = std::string(cache_type_name(report.runner.cache_k));
    row["type_v"] = std::string(cache_type_name(report.runner.cache_v));
    row["n_gpu_layers"] = 0;
    row["flash_attn"] = report.runner.flash_attention != FlashAttention::kOff;
    row["use_mmap"] = report.use_mmap;
    row["n_prompt"] = test.n_prompt;
    row["n_gen"] = test.n_gen;
    row["n_depth"] = test.n_depth;
    row["n_parallel"] = test.n_parallel;
    row["test_time"] = test.test_time;
    row["avg_ns"] = std::llround(ns.mean);
    row["stddev_ns"] = std::llround(ns.stddev);
    row["avg_ts"] = ts.mean;
    row["stddev_ts"] = ts.stddev;
    row["median_ts"] = ts.median;
    row["samples_ns"] = whole_ns;
    row["samples_ts"] = test.samples_ts();
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace hocket
