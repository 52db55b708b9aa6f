// cli/command.h: a subcommand of the program.
//
// add_…() declares the flags; run() is called when the command was chosen and its flags are complete. It returns the
// exit code: 0, 1 for a failure at run time, 2 for wrong usage.
//
// Threads  the main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace hocket {

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
};

Command add_serve(CLI::App& root);
// `words` is the command line, to tell a model given there from one in the environment.
Command add_run(CLI::App& root, const std::vector<std::string>& words);
Command add_inspect(CLI::App& root);
Command add_bench(CLI::App& root);
Command add_logits(CLI::App& root);
Command add_tokenize(CLI::App& root);
Command add_perplexity(CLI::App& root);
Command add_quantize(CLI::App& root);
Command add_synth(CLI::App& root);
Command add_compose(CLI::App& root);
Command add_understand(CLI::App& root);
Command add_vae(CLI::App& root);

inline constexpr int kExitRuntime = 1;
inline constexpr int kExitUsage = 2;

// Prints "hocket: message" on stderr; the exit code that fits: wrong flags are usage, everything else run time.
int report_failure(const Error& error);
int usage_failure(const std::string& message);

}  // namespace hocket
