// cli/config_file.h: settings from a TOML or INI file and from the environment.
//
// A key at the top of the file is a flag of any command and reaches the one that runs; a section [serve], [run], … is
// for that command only and beats the top. Keys are long flag names without dashes. Flag beats environment beats file.
//
// Threads  the main thread.
// Errors   CLI::ConfigError for a key that is no flag of any command.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace hocket {

// Gives every long flag of every command its environment name: --ctx-size is HOCKET_CTX_SIZE.
void name_environment(CLI::App& root);
// Adds --config FILE (HOCKET_CONFIG).
void add_config_flag(CLI::App& root);
// The settings of a command as such a file; keys are left out.
std::string print_config(const CLI::App& command);

}  // namespace hocket
