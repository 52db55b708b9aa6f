#include <fmt/format.h>

#include <memory>
#include <utility>

#include "cli/command.h"
#include "cli/music_flags.h"
#include "engine/process_usage.h"

namespace hocket {
namespace {

struct ComposeFlags {
  MusicFlags music;
  std::string output, mode;
  int variations = 0;
  int64_t lm_seed = -1;
  bool exact_duration = false;
  bool plan = false;
};

int print_plan(const MusicOptions& options, const std::vector<MusicRequest>& requests) {
  const auto plan = plan_compose(options, requests);
  if (!plan) return report_failure(plan.error());
  const std::size_t program = process_usage().rss_bytes;
  for (const auto& [what, n_bytes] : {std::pair("weights", plan->weight_bytes), std::pair("cache", plan->cache_bytes),
                                      std::pair("compute", plan->compute_bytes), std::pair("program", program),
                                      std::pair("total", program + plan->total_bytes())})
    fmt::print("{:<8} {:>10.1f} MiB\n", what, static_cast<double>(n_bytes) / (1 << 20));
  return 0;
}

int compose(const CLI::App& app, const ComposeFlags& flags) {
  auto requests = requests_of(app, flags.music);
  if (!requests) return report_failure(requests.error());
  for (MusicRequest& request : *requests) {
    if (app.count("--mode") > 0) request.lm_mode = flags.mode;
    if (app.count("--variations") > 0) request.lm_batch_size = flags.variations;
    if (app.count("--lm-seed") > 0) request.lm_seed = flags.lm_seed;
    if (app.count("--exact-duration") > 0) request.lm_exact_duration = flags.exact_duration;
  }
  if (flags.plan) return print_plan(flags.music.options, *requests);
  Result<std::vector<MusicRequest>> composed = std::vector<MusicRequest>();
  {
    MusicWork work(flags.music.quiet);
    composed = compose_requests(flags.music.options, *requests, work.progress(), work.cancel());
  }
  if (!composed) return report_failure(composed.error());
  if (flags.output == "-") {
    for (const MusicRequest& request : *composed) fmt::print("{}\n", music_request_json(request));
    return 0;
  }
  const bool one = composed->size() == 1 && !flags.output.empty();
  std::string stem = flags.output.empty() ? request_stem(flags.music) : flags.output;
  if (!one && stem.ends_with(".json")) stem.resize(stem.size() - 5);
  for (std::size_t i = 0; i < composed->size(); ++i) {
    const std::string path = one ? stem : fmt::format("{}{}.json", stem, i);
    const auto written = save_request(path, (*composed)[i]);
    if (!written) return report_failure(written.error());
    fmt::print("{}\n", path);
  }
  return 0;
}

}  // namespace

Command add_compose(CLI::App& root) {
  auto flags = std::make_shared<ComposeFlags>();
  CLI::App* app = root.add_subcommand("compose", "let the language model write what a music request leaves open");
  add_music_file_flags(*app, flags->music, {.lm = true});
  add_request_flags(*app, flags->music);
  app->add_option("-o,--output", flags->output,
                  "file of the finished request, \"-\" for standard output (default: the request's name and a number)");
  app->add_option("--mode", flags->mode, "generate, inspire or format (default: the request's, generate)");
  app->add_option("--variations", flags->variations, "how many to write, with neighbouring seeds")
      ->check(CLI::Range(1, 9));
  app->add_flag("--exact-duration", flags->exact_duration,
                "write exactly the audio codes of the duration; else the model ends by itself, usually close");
  app->add_option("--lm-seed", flags->lm_seed, "seed of the language model (default: random)")
      ->check(CLI::Range(0.0, 4294967295.0));
  app->add_flag("--plan", flags->plan, "print the memory that this would take, and write nothing");
  add_planner_flags(*app, flags->music);
  add_music_run_flags(*app, flags->music);
  return {app, [app, flags] { return compose(*app, *flags); }};
}

}  // namespace hocket
