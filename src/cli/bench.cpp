#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/command.h"
#include "cli/model_flags.h"
#include "engine/model_bench.h"

namespace hocket {
namespace {

struct BenchFlags {
  ModelFlags model;
  BenchOptions bench;
  std::string format = "md";
};

void print_table_head() {
  fmt::print("| model | size | params | threads | type_k | type_v | test | t/s median | t/s mean ± stddev |\n");
  fmt::print("| --- | ---: | ---: | ---: | --- | --- | ---: | ---: | ---: |\n");
}

void print_table_row(const BenchReport& report, const BenchResult& test) {
  const Spread ts = spread_of(test.samples_ts());
  std::string name = test.n_prompt > 0 ? fmt::format("pp{}", test.n_prompt) : fmt::format("tg{}", test.n_gen);
  if (test.n_parallel > 1) name += fmt::format(" x{}", test.n_parallel);
  if (test.n_depth > 0) name += fmt::format(" @ d{}", test.n_depth);
  fmt::print("| {} {} | {:.2f} MiB | {:.2f} M | {} | {} | {} | {} | {:.2f} | {:.2f} ± {:.2f} |\n", report.model.arch,
             report.model.quantisation, static_cast<double>(report.model.weight_bytes) / (1 << 20),
             static_cast<double>(report.model.n_params) / 1e6, test.n_threads, cache_type_name(report.runner.cache_k),
             cache_type_name(report.runner.cache_v), name, ts.median, ts.mean, ts.stddev);
  std::fflush(stdout);
}

// The scalar fields of the JSON form.
void print_csv(const Json& rows) {
  std::vector<std::string> names;
  for (const auto& [name, value] : rows.at(0).items()) {
    if (!value.is_array()) names.push_back(name);
  }
  fmt::print("{}\n", fmt::join(names, ","));
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& name : names) cells.push_back(dump_json(row.at(name)));
    fmt::print("{}\n", fmt::join(cells, ","));
  }
}

int bench(BenchFlags& flags) {
  if (flags.model.list_devices) return print_devices();
  if (const auto named = require_model(flags.model); !named) return usage_failure(named.error().message);
  flags.bench.model = flags.model.session();
  const bool table = flags.format == "md";
  bool first = true;
  const auto report = run_bench(flags.bench, [&](const BenchReport& so_far, const BenchResult& test) {
    if (!table) return;
    if (first) print_table_head();
    first = false;
    print_table_row(so_far, test);
  });
  if (!report) return report_failure(report.error());
  if (table) return 0;
  const Json rows = bench_json(*report);
  if (flags.format == "json") {
    fmt::print("{}\n", dump_json(rows, 2));
  } else {
    print_csv(rows);
  }
  return 0;
}

}  // namespace

Command add_bench(CLI::App& root) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* app = root.add_subcommand("bench", "measure prompt evaluation and generation (flags of llama-bench)");
  BenchOptions& bench_options = flags->bench;
  const auto sizes = [&](const std::string& name, std::vector<std::size_t>& target, const std::string& text) {
    app->add_option(name, target, text)->delimiter(',')->check(CLI::Range(0, 1 << 20))->capture_default_str();
  };
  add_model_flag(*app, flags->model, true);
  sizes("-p,--n-prompt", bench_options.n_prompt, "prompt lengths, separated by commas; 0 leaves the test out");
  sizes("-n,--n-gen", bench_options.n_gen, "numbers of tokens to generate; 0 leaves the test out");
  sizes("-d,--n-depth", bench_options.n_depth, "tokens that are remembered before each test");
  app->add_option("--parallel", bench_options.n_parallel,
                  "sequences that generate side by side, all their tokens counted (short: -np)")
      ->delimiter(',')
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app->add_option("-t,--threads", bench_options.n_threads, "numbers of threads; 0: the physical cores")
      ->delimiter(',')
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app->add_option("-r,--repetitions", bench_options.repetitions, "timed runs of each test")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app->add_option("-o,--output", flags->format, "md, json or csv")
      ->check(CLI::IsMember({"md", "json", "csv"}))
      ->capture_default_str();
  add_runner_flags(*app, flags->model);
  return {app, [flags] { return bench(*flags); }};
}

}  // namespace hocket
