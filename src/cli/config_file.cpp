#include "cli/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

namespace hocket {
namespace {

std::string environment_name(const std::string& flag) {
  std::string name = "HOCKET_";
  for (const char c : flag) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

bool set_in_environment(const CLI::Option& option) {
  if (option.get_envname().empty()) return false;
  const char* value = std::getenv(option.get_envname().c_str());
  return value != nullptr && *value != '\0';
}

const CLI::Option* find_flag(const CLI::App& command, const std::string& key) {
  const CLI::Option* option = command.get_option_no_throw("--" + key);
  return option != nullptr && option->get_configurable() ? option : nullptr;
}

// Hands CLI11 only what the chosen command is to take from the file.
class CommandConfig : public CLI::ConfigINI {
 public:
  explicit CommandConfig(CLI::App& root) : root_(&root) {
    commentChar = '#';
    parentSeparatorChar = '.';
  }

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    const std::vector<CLI::App*> chosen = root_->get_subcommands();
    std::vector<CLI::ConfigItem> general;
    std::vector<CLI::ConfigItem> special;
    for (CLI::ConfigItem& item : CLI::ConfigINI::from_config(input)) {
      if (item.name == "++" || item.name == "--") continue;  // borders of sections
      const CLI::App* command = check(item);
      if (chosen.empty()) continue;
      const CLI::App* target = chosen.front();
      if (command != nullptr && command != target) continue;
      const CLI::Option* option = find_flag(*target, item.name);
      if (option == nullptr || set_in_environment(*option)) continue;
      (command == nullptr ? general : special).push_back(std::move(item));
    }
    std::vector<CLI::ConfigItem> out = std::move(special);
    for (CLI::ConfigItem& item : general) {
      const bool covered =
          std::any_of(out.begin(), out.end(), [&](const auto& other) { return other.name == item.name; });
      if (covered) continue;
      item.parents = {chosen.front()->get_name()};
      out.push_back(std::move(item));
    }
    return out;
  }

 private:
  // The command whose section the key is in; nullptr at the top.
  const CLI::App* check(const CLI::ConfigItem& item) const {
    if (item.parents.empty()) {
      for (const CLI::App* command : root_->get_subcommands({})) {
        if (find_flag(*command, item.name) != nullptr) return nullptr;
      }
      throw CLI::ConfigError(fmt::format("the config file sets \"{}\", which is no flag of any command", item.name));
    }
    const CLI::App* command = nullptr;
    try {
      if (item.parents.size() == 1) command = root_->get_subcommand(item.parents.front());
    } catch (const CLI::OptionNotFound&) {
    }
    if (command == nullptr) {
      throw CLI::ConfigError(fmt::format("the config file has a section [{}], but there is no such command",
                                         fmt::join(item.parents, ".")));
    }
    if (find_flag(*command, item.name) == nullptr) {
      throw CLI::ConfigError(fmt::format("the config file sets \"{}\" in [{}], which is no flag of that command",
                                         item.name, item.parents.front()));
    }
    return command;
  }

  CLI::App* root_;
};

// CLI11 writes the default of a list as [a,b].
std::vector<std::string> default_values(const std::string& text) {
  if (text.empty()) return {};
  if (text.front() != '[' || text.back() != ']') return {text};
  return CLI::detail::split(text.substr(1, text.size() - 2), ',');
}

std::string toml_text(const std::string& value) {
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

void name_environment(CLI::App& root) {
  for (CLI::App* command : root.get_subcommands({})) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_lnames().empty() || !option->get_configurable()) continue;
      option->envname(environment_name(option->get_lnames().front()));
    }
  }
}

void add_config_flag(CLI::App& root) {
  const char* path = std::getenv("HOCKET_CONFIG");
  const bool given = path != nullptr && *path != '\0';
  root.config_formatter(std::make_shared<CommandConfig>(root));
  root.set_config("--config", given ? path : "", "TOML or INI file with settings (environment: HOCKET_CONFIG)", given);
  root.allow_config_extras(CLI::config_extras_mode::error);
}

std::string print_config(const CLI::App& command) {
  std::string out = fmt::format("[{}]\n", command.get_name());
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_lnames().empty() || !option->get_configurable()) continue;
    const std::string& name = option->get_lnames().front();
    std::vector<std::string> values = option->reduced_results();
    if (values.empty()) values = default_values(option->get_default_str());
    if (name == "api-key" && !values.empty()) {
      out += "# api-key is set\n";
    } else if (values.empty()) {
      out += fmt::format("# {} is not set\n", name);
    } else if (values.size() == 1) {
      out += fmt::format("{} = {}\n", name, toml_text(values.front()));
    } else {
      for (std::string& value : values) value = toml_text(value);
      out += fmt::format("{} = [{}]\n", name, fmt::join(values, ", "));
    }
  }
  return out;
}

}  // namespace hocket
