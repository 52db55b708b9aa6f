#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "base/log.h"
#include "cli/chat_console.h"
#include "cli/command.h"
#include "cli/model_flags.h"
#include "cli/remote_chat.h"
#include "cli/sampling_flags.h"
#include "cli/text_input.h"

namespace hocket {
namespace {

struct RunFlags {
  ModelFlags model;
  std::vector<std::string> words;  // [MODEL] [PROMPT]
  ConsoleOptions console;
  std::string template_file;
  std::string url, api_key;  // of a server that runs; "": the model is loaded here
  bool no_thinking = false;
  bool hide_thinking = false;
  bool verbose = false;
};

// A model from the environment or the config file gives way to one among the words; one behind -m does not.
bool names_model(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--model" || word.compare(0, 8, "--model=") == 0 || word.compare(0, 2, "-m") == 0) return true;
  }
  return false;
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// Which words are the model and which the prompt; nullopt prompt: a conversation.
Result<std::optional<std::string>> sort_words(RunFlags& flags, bool model_on_command_line) {
  std::vector<std::string>& words = flags.words;
  std::optional<std::string> prompt;
  if (!flags.url.empty()) {
    if (words.size() > 1) {
      return Error(ErrorCode::kInvalid, "with --url only one argument, the prompt, fits; -m names the server's model");
    }
    if (!words.empty()) prompt = words[0];
  } else if (model_on_command_line || (words.size() == 1 && !flags.model.path.empty() && !is_file(words[0]))) {
    if (words.size() > 1) {
      return Error(ErrorCode::kInvalid, "the model is given by -m, so only one more argument, the prompt, fits");
    }
    if (!words.empty()) prompt = words[0];
  } else {
    if (!words.empty() && words[0] == "-") {
      return Error(ErrorCode::kInvalid, "a prompt from standard input needs a model: -m FILE or HOCKET_MODEL");
    }
    if (!words.empty()) flags.model.path = words[0];
    if (words.size() > 1) prompt = words[1];
  }
  if (flags.url.empty()) TRY(require_model(flags.model));
  if (prompt && *prompt == "-") {
    TRY_ASSIGN(prompt, read_text("-"));
    while (!prompt->empty() && prompt->back() == '\n') prompt->pop_back();
    if (prompt->empty()) return Error(ErrorCode::kInvalid, "standard input holds no prompt");
  }
  return prompt;
}

Result<std::unique_ptr<ChatPeer>> open_peer(const RunFlags& flags, bool model_on_command_line) {
  if (!flags.url.empty()) {
    // A model in the environment or the config file is one to be loaded.
    TRY_ASSIGN(auto remote,
               RemoteChat::open(flags.url, flags.api_key, model_on_command_line ? flags.model.path : std::string()));
    return std::unique_ptr<ChatPeer>(std::move(remote));
  }
  ServiceOptions options;
  TRY(flags.model.apply(options));
  options.max_n = 1;
  options.n_parallel = 1;
  options.request_timeout_ms = 0;
  if (!flags.template_file.empty()) {
    TRY_ASSIGN(options.chat_template, read_text(flags.template_file));
  }
  TRY_ASSIGN(auto service, ChatService::load(options));
  return std::unique_ptr<ChatPeer>(std::make_unique<LocalPeer>(std::move(service)));
}

int run(RunFlags& flags, bool model_on_command_line) {
  if (flags.model.list_devices) return print_devices();
  LogOptions log;
  log.level = flags.verbose ? LogLevel::kDebug : flags.console.quiet ? LogLevel::kError : LogLevel::kWarn;
  if (const auto configured = configure_log(log); !configured) return report_failure(configured.error());
  if (const auto checked = check_sampling_flags(flags.console.params); !checked) return report_failure(checked.error());
  const auto prompt = sort_words(flags, model_on_command_line);
  if (!prompt) return usage_failure(prompt.error().message);

  const auto peer = open_peer(flags, model_on_command_line);
  if (!peer) return report_failure(peer.error());
  flags.console.thinking = !flags.no_thinking;
  flags.console.show_thinking = !flags.hide_thinking;
  ChatConsole console(**peer, flags.console);
  return *prompt ? console.answer_once(**prompt) : console.converse();
}

}  // namespace

Command add_run(CLI::App& root, const std::vector<std::string>& words) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* app = root.add_subcommand("run", "chat in the terminal, or answer one prompt");
  add_model_flag(*app, flags->model, false);
  app->add_option("WORDS", flags->words,
                  "[MODEL] [PROMPT]: without a prompt a conversation starts; the prompt - reads standard input")
      ->expected(0, 2);
  app->add_option(
      "--url", flags->url,
      "chat with a model of a server that runs: http://HOST:PORT, https://… or unix:/PATH; -m names the model");
  app->add_option("--api-key", flags->api_key, "key that the server asks for");
  app->add_option("--system", flags->console.system, "system message (short: -sys)");
  app->add_option("--chat-template-file", flags->template_file, "Jinja template that replaces the model's own");
  app->add_flag("--no-thinking", flags->no_thinking, "ask the model to answer without thinking first");
  app->add_flag("--hide-thinking", flags->hide_thinking, "do not show what the model thinks");
  app->add_flag("-q,--quiet", flags->console.quiet, "print the answer only");
  app->add_flag("-v,--verbose", flags->verbose, "log details");
  add_context_flag(*app, flags->model, "context in tokens: 4096, 4K, … (default: the model's own, at most 8K)");
  app->add_option("-t,--threads", flags->model.n_threads, "threads (default: the physical cores)")
      ->check(CLI::Range(1, 1024));
  add_runner_flags(*app, flags->model);
  add_checkpoint_flag(*app, flags->model);
  app->add_flag("--mlock", flags->model.mlock, "keep the mapped weights in memory");
  add_draft_flags(*app, flags->model);
  add_sampling_flags(*app, flags->console.params);
  const bool named = names_model(words);
  return {app, [flags, named] { return run(*flags, named); }};
}

}  // namespace hocket
