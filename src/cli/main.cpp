#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <vector>

#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/model_flags.h"
#include "engine/build_info.h"

namespace hocket {

int report_failure(const Error& error) {
  fmt::print(stderr, "hocket: {}\n", error.message);
  // An option that the server refused is wrong usage; everything else went wrong at run time.
  return error.code == ErrorCode::kInvalid && error.param.compare(0, 2, "--") == 0 ? kExitUsage : kExitRuntime;
}

int usage_failure(const std::string& message) {
  fmt::print(stderr, "hocket: {}\n", message);
  return kExitUsage;
}

namespace {

int run_program(int argc, char** argv) {
  CLI::App root("hocket: chat language models and music on your own machine", "hocket");
  root.set_version_flag("--version", version_text());
  root.require_subcommand(0, 1);
  add_config_flag(root);
  bool list_devices = false;
  root.add_flag("--list-devices", list_devices, "list the devices that --device accepts");
  std::vector<std::string> words = expand_short_flags(argc, argv);
  const std::vector<Command> commands{add_serve(root),   add_run(root, words), add_inspect(root),    add_bench(root),
                                      add_logits(root),  add_tokenize(root),   add_perplexity(root), add_quantize(root),
                                      add_compose(root), add_synth(root),      add_understand(root), add_vae(root)};
  for (const Command& command : commands) command.app->fallthrough();
  name_environment(root);
  root.footer(
      "Every flag can be set as HOCKET_… in the environment and in a file named by --config.\n"
      "hocket COMMAND --help shows the flags of a command.");

  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  try {
    root.parse(words);
  } catch (const CLI::ParseError& error) {
    return root.exit(error) == 0 ? 0 : kExitUsage;
  }
  if (list_devices) return print_devices();
  for (const Command& command : commands) {
    if (root.got_subcommand(command.app)) return command.run();
  }
  fmt::print(stderr, "{}", root.help());
  return kExitUsage;
}

}  // namespace
}  // namespace hocket

int main(int argc, char** argv) {
  try {
    return hocket::run_program(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hocket: %s\n", error.what());
    return hocket::kExitRuntime;
  }
}
