#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/model_flags.h"
#include "engine/model_tools.h"

namespace hocket {
namespace {

struct LogitsFlags {
  ModelFlags model;
  std::vector<TokenId> tokens;
  bool all = false;
  std::string output;
};

int logits(const LogitsFlags& flags) {
  if (flags.model.list_devices) return print_devices();
  if (const auto named = require_model(flags.model); !named) return usage_failure(named.error().message);
  if (flags.tokens.empty()) return usage_failure("--tokens is required");
  if (flags.output.empty()) return usage_failure("-o FILE is required");
  ModelSessionOptions options = flags.model.session();
  if (options.runner.n_ctx == 0) options.runner.n_ctx = flags.tokens.size();
  const auto written = write_logits(options, flags.tokens, flags.all, flags.output);
  if (!written) return report_failure(written.error());
  fmt::print("{} rows of {} float32 values in {}\n", written->n_rows, written->n_vocab, flags.output);
  return 0;
}

}  // namespace

Command add_logits(CLI::App& root) {
  auto flags = std::make_shared<LogitsFlags>();
  CLI::App* app = root.add_subcommand("logits", "write a model's logits for given tokens, for comparisons");
  add_model_flag(*app, flags->model, true);
  app->add_option("--tokens", flags->tokens, "token ids, separated by commas")->delimiter(',');
  app->add_flag("--all", flags->all, "a row after every token instead of the last one only");
  app->add_option("-o,--output-file", flags->output, "file for rows of little-endian float32, without a header");
  add_context_flag(*app, flags->model, "context in tokens (default: as many as are given)");
  app->add_option("-t,--threads", flags->model.n_threads, "threads (default: the physical cores)")
      ->check(CLI::Range(1, 1024));
  add_runner_flags(*app, flags->model);
  return {app, [flags] { return logits(*flags); }};
}

}  // namespace hocket
