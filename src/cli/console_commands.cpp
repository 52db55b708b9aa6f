#include "cli/console_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "cli/sampling_flags.h"

namespace hocket {

struct ConsoleCommands::Entry {
  const char* name;
  const char* argument;  // "": none; in brackets: may be left out
  const char* text;
  Result<void> (ConsoleCommands::*run)(const std::string&);
};

using C = ConsoleCommands;
const C::Entry C::kEntries[] = {
    {"/help", "", "this list", &C::help},
    {"/reset", "", "forget what was said", &C::reset},
    {"/system", "[TEXT]", "set the system message, or show it", &C::system},
    {"/set", "[NAME VALUE]", "set how answers are sampled, or show what is set; the value \"default\" takes it back",
     &C::set},
    {"/save", "FILE", "write the conversation to a JSON file", &C::save},
    {"/load", "FILE", "go on with the conversation in a file", &C::load},
    {"/fork", "NAME", "copy the conversation to a new branch and go on there", &C::fork},
    {"/switch", "[NAME]", "go on in another branch, or list them", &C::switch_branch},
    {"/cancel", "", "end the answer that is being written, as Ctrl-C does", &C::cancel},
    {"/quit", "", "end; Ctrl-D does the same", &C::quit},
};

C::Outcome C::run(const std::string& line) {
  const std::size_t space = line.find_first_of(" \t\n");
  const std::string word = line.substr(0, space);
  std::string argument = space == std::string::npos ? "" : line.substr(space + 1);
  argument.erase(0, argument.find_first_not_of(" \t\n"));
  argument.erase(argument.find_last_not_of(" \t\n") + 1);

  const std::string name = word == "/exit" || word == "/bye" ? "/quit" : word == "/clear" ? "/reset" : word;
  const auto* entry =
      std::find_if(std::begin(kEntries), std::end(kEntries), [&](const Entry& e) { return name == e.name; });
  if (entry == std::end(kEntries)) {
    return fail(fmt::format("there is no command {}; /help lists them", word));
  }
  const std::string_view wanted = entry->argument;
  if (wanted.empty() != argument.empty() && (wanted.empty() || wanted.front() != '[')) {
    return fail(fmt::format("usage: {} {}", entry->name, wanted));
  }
  const Result<void> done = (this->*entry->run)(argument);
  if (!done) return fail(done.error().message);
  return quit_ ? Outcome::kQuit : Outcome::kDone;
}

C::Outcome C::fail(const std::string& line) {
  say_(line, true);
  return Outcome::kFailed;
}

Result<void> C::help(const std::string&) {
  for (const Entry& entry : kEntries) {
    tell(fmt::format("{:<20} {}", fmt::format("{} {}", entry.name, entry.argument), entry.text));
  }
  tell("A \\ at the end of a line, or \"\"\" around the text, makes several lines one message.");
  return {};
}

Result<void> C::reset(const std::string&) {
  conversation_.reset();
  tell("(forgotten)");
  return {};
}

Result<void> C::cancel(const std::string&) {
  tell("(no answer is being written)");
  return {};
}

Result<void> C::system(const std::string& text) {
  if (!text.empty()) conversation_.set_system(text);
  const std::string now = conversation_.system();
  tell(now.empty() ? "(no system message)" : "system: " + now);
  return {};
}

Result<void> C::set(const std::string& argument) {
  const std::size_t space = argument.find_first_of(" \t");
  if (!argument.empty() && space == std::string::npos) {
    return Error(ErrorCode::kInvalid, "usage: /set NAME VALUE; names: " + sampling_names());
  }
  if (!argument.empty()) {
    const std::size_t value = argument.find_first_not_of(" \t", space);
    TRY(set_sampling(params_, argument.substr(0, space), argument.substr(value)));
  }
  const std::string now = describe_sampling(params_);
  tell(now.empty() ? "(nothing is set; names: " + sampling_names() + ")" : "set: " + now);
  return {};
}

Result<void> C::save(const std::string& path) {
  TRY(conversation_.save(path));
  tell(fmt::format("({} messages in {})", conversation_.messages().size(), path));
  return {};
}

Result<void> C::load(const std::string& path) {
  TRY(conversation_.load(path));
  tell(fmt::format("({} messages from {})", conversation_.messages().size(), path));
  return {};
}

Result<void> C::fork(const std::string& name) {
  TRY(conversation_.fork(name));
  tell(fmt::format("(in branch {})", name));
  return {};
}

Result<void> C::switch_branch(const std::string& name) {
  if (!name.empty()) TRY(conversation_.switch_to(name));
  std::string list;
  for (const std::string& branch : conversation_.branches()) {
    list += fmt::format("{}{}{}", list.empty() ? "" : ", ", branch, branch == conversation_.branch() ? " (here)" : "");
  }
  tell("branches: " + list);
  return {};
}

Result<void> C::quit(const std::string&) {
  quit_ = true;
  return {};
}

}  // namespace hocket
