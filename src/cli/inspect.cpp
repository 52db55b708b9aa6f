#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/model_flags.h"
#include "engine/model_report.h"

namespace hocket {
namespace {

struct InspectFlags {
  ModelFlags model;
  bool tensors = false;
  bool vocabulary = false;
  bool json = false;
};

int inspect(const InspectFlags& flags) {
  if (flags.model.list_devices) return print_devices();
  if (const auto named = require_model(flags.model); !named) return usage_failure(named.error().message);
  ReportOptions options;
  options.runner = flags.model.runner();
  options.load = flags.model.load();
  options.tensors = flags.tensors;
  options.vocabulary = flags.vocabulary;
  const auto report = report_model(flags.model.path, options);
  if (!report) return report_failure(report.error());
  fmt::print("{}", flags.json ? dump_json(*report, 2) + "\n" : format_report(*report));
  return 0;
}

}  // namespace

Command add_inspect(CLI::App& root) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* app = root.add_subcommand("inspect", "show what is in a model file and whether it can run here");
  add_model_flag(*app, flags->model, true);
  add_context_flag(*app, flags->model, "context to estimate the memory for: 4096, 4K, … (default: the model's own)");
  add_runner_flags(*app, flags->model);
  app->add_flag("--tensors", flags->tensors, "list every tensor");
  app->add_flag("--all-metadata", flags->vocabulary, "whole arrays instead of their first items");
  app->add_flag("--json", flags->json, "print JSON");
  return {app, [flags] { return inspect(*flags); }};
}

}  // namespace hocket
