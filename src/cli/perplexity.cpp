#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/command.h"
#include "cli/model_flags.h"
#include "cli/text_input.h"
#include "engine/model_tools.h"

namespace hocket {
namespace {

struct PerplexityFlags {
  ModelFlags model;
  std::string file;
  bool json = false;
};

int perplexity(const PerplexityFlags& flags) {
  if (flags.model.list_devices) return print_devices();
  if (const auto named = require_model(flags.model); !named) return usage_failure(named.error().message);
  if (flags.file.empty()) return usage_failure("-f FILE is required");
  const auto text = read_text(flags.file);
  if (!text) return report_failure(text.error());
  ModelSessionOptions options = flags.model.session();
  if (options.runner.n_ctx == 0) options.runner.n_ctx = 4096;
  const auto result = measure_perplexity(options, *text, [&](std::size_t n_done, std::size_t n_all) {
    if (n_all > 1) fmt::print(stderr, "window {} of {}\n", n_done, n_all);
  });
  if (!result) return report_failure(result.error());
  if (flags.json) {
    Json out;
    out["n_tokens"] = result->n_tokens;
    out["n_scored"] = result->n_scored;
    out["mean_nll"] = result->mean_nll;
    out["standard_error"] = result->standard_error;
    out["perplexity"] = result->perplexity;
    fmt::print("{}\n", dump_json(out));
  } else {
    fmt::print("perplexity {:.4f} (mean -ln p {:.4f} ± {:.4f} over {} tokens)\n", result->perplexity, result->mean_nll,
               result->standard_error, result->n_scored);
  }
  return 0;
}

}  // namespace

Command add_perplexity(CLI::App& root) {
  auto flags = std::make_shared<PerplexityFlags>();
  CLI::App* app = root.add_subcommand("perplexity", "how well a model predicts a text");
  add_model_flag(*app, flags->model, true);
  app->add_option("-f,--file", flags->file, "the text; - reads standard input");
  app->add_flag("--json", flags->json, "print JSON");
  add_context_flag(*app, flags->model, "tokens evaluated together; the text is cut into such windows (default: 4K)");
  app->add_option("-t,--threads", flags->model.n_threads, "threads (default: the physical cores)")
      ->check(CLI::Range(1, 1024));
  add_runner_flags(*app, flags->model);
  return {app, [flags] { return perplexity(*flags); }};
}

}  // namespace hocket
