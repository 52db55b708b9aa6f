#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/log.h"
#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/serve_console.h"
#include "cli/serve_flags.h"
#include "cli/service_manager.h"
#include "cli/signals.h"
#include "http/server.h"

namespace hocket {
namespace {

using std::chrono::milliseconds;

double mib(std::size_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

int print_plan(const ServiceOptions& options) {
  const auto plan = plan_service(options);
  if (!plan) return report_failure(plan.error());
  const MemoryPlan& memory = plan->memory;
  fmt::print(
      "context  {:>10} tokens\nlanes    {:>10}\ncells    {:>10} tokens\nweights  {:>10.1f} MiB\ncache    {:>10.1f} "
      "MiB\ncompute  {:>10.1f} MiB\n",
      plan->n_ctx, plan->n_lanes, plan->n_cells, mib(memory.weight_bytes), mib(memory.cache_bytes),
      mib(memory.compute_bytes));
  const std::size_t draft_bytes = plan->draft_memory.total_bytes();
  if (draft_bytes > 0) fmt::print("drafts   {:>10.1f} MiB\n", mib(draft_bytes));
  fmt::print("total    {:>10.1f} MiB\n", mib(memory.total_bytes() + draft_bytes));
  return 0;
}

int print_contexts(const ServiceOptions& options) {
  std::vector<std::size_t> sizes;
  for (std::size_t n = 4096; n <= 256 * 1024; n *= 2) sizes.push_back(n);
  const auto plans = plan_contexts(options, sizes);
  if (!plans) return report_failure(plans.error());
  fmt::print("{:>8} {:>14} {:>14} {:>14} {:>14}\n", "context", "weights", "cache", "compute", "total");
  for (const ServicePlan& plan : *plans) {
    const MemoryPlan& memory = plan.memory;
    const bool beyond = plan.n_ctx_train != 0 && plan.n_ctx > plan.n_ctx_train;
    fmt::print("{:>7}K {:>10.1f} MiB {:>10.1f} MiB {:>10.1f} MiB {:>10.1f} MiB{}\n", plan.n_ctx / 1024,
               mib(memory.weight_bytes), mib(memory.cache_bytes), mib(memory.compute_bytes), mib(memory.total_bytes()),
               beyond ? fmt::format("  beyond the {} tokens of training", plan.n_ctx_train) : "");
  }
  return 0;
}

// `models` empty: there is no language model.
void announce(const Server& server, const std::vector<ModelStatus>& models, bool needs_key) {
  const std::vector<std::string> urls = server.urls();
  const std::string url = urls.empty() ? "" : urls.front();
  const std::string unix_prefix = "unix:";
  const std::string path = !models.empty() ? "/v1/chat/completions" : "/v1/audio/generations";
  const std::string key = needs_key ? " -H \"Authorization: Bearer $HOCKET_API_KEY\"" : "";
  std::string target = url + path;
  if (url.compare(0, unix_prefix.size(), unix_prefix) == 0) {
    target = fmt::format("--unix-socket {} http://localhost{}", url.substr(unix_prefix.size()), path);
  } else if (url.compare(0, 6, "https:") == 0) {
    target = "-k " + target;  // the certificate is hardly one for this address
  }
  std::string what = "music";
  if (models.size() == 1) what = "model " + models.front().id;
  if (models.size() > 1) what = fmt::format("{} models", models.size());
  fmt::print("hocket ready on {} ({})\n", fmt::join(urls, " and "), what);
  if (models.empty()) {
    fmt::print("  curl {}{} -H 'Content-Type: application/json' -d '{{\"prompt\": \"calm piano\"}}' -o song.mp3\n",
               target, key);
    std::fflush(stdout);
    return;
  }
  fmt::print(
      "  curl {}{} -H 'Content-Type: application/json' \\\n"
      "    -d '{{\"model\": \"{}\", \"messages\": [{{\"role\": \"user\", \"content\": \"Say hello.\"}}]}}'\n",
      target, key, models.front().id);
  std::fflush(stdout);
}

// Keys, certificate and logs again from their files. What cannot be read stays as it was.
void reload(const ServeFlags& flags, Server& server) {
  const auto report = [](const char* what, const Result<void>& result) {
    if (!result) log_error("{} stays as it was: {}", what, result.error().message);
  };
  report("the log file", reopen_log());
  if (!flags.api_key_file.empty()) {
    const auto keys = flags.keys();
    report("the set of API keys", keys ? server.set_api_keys(*keys) : Result<void>(keys.error()));
  }
  report("the certificate or the metrics log", server.reload());
  log_info("reloaded");
}

// Ends the running replies; a second signal ends the program at once.
void shut_down(Server& server, milliseconds limit, SignalWait& signals) {
  log_info("stopping: running requests get {} s", limit.count() / 1000);
  std::atomic<bool> done{false};
  std::thread worker([&] {
    server.stop(limit);
    done = true;
  });
  while (!done) {
    const std::optional<int> signal = signals.wait(milliseconds(20));
    if (signal && *signal != SIGHUP && !done) {
      log_warn("stopping at once");
      std::fflush(nullptr);
      ::_exit(kExitRuntime);
    }
  }
  worker.join();
}

// Tells what is there and what it cannot do; kNotFound when it can do nothing.
Result<void> look_at_music(const MusicService& music, const std::string& folder) {
  const MusicInventory found = music.inventory();
  log_info("music models: {} language model(s), {} text encoder(s), {} transformer(s), {} VAE(s), {} adapter(s)",
           found.lm.size(), found.text_encoder.size(), found.dit.size(), found.vae.size(), found.adapters.size());
  bool any = false;
  for (const MusicTask task : {MusicTask::kCompose, MusicTask::kSynth, MusicTask::kUnderstand, MusicTask::kVae}) {
    const auto able = music.ready(task);
    if (!able) log_warn("{}", able.error().message);
    any = any || able.ok();
  }
  if (any) return {};
  return Error(ErrorCode::kNotFound, fmt::format("{} holds no set of music models that can do anything", folder),
               "--music-models");
}

int serve_until_signal(const ServeFlags& flags, HostOptions host_options, ServerOptions server_options) {
  SignalWait signals(/*interrupt=*/!flags.console);
  const bool needs_key = !server_options.api_keys.empty();
  auto opened = flags.serves_chat() ? ModelHost::open(std::move(host_options)) : ModelHost::none(flags.budget_bytes());
  if (!opened) return report_failure(opened.error());
  ModelHost& host = **opened;
  std::shared_ptr<MusicService> music;
  if (flags.music.enabled()) {
    MusicServiceOptions music_options = flags.music.service();
    if (flags.budget_bytes() > 0)
      music_options.run.room = [&host](std::string_view what, uint64_t n_bytes, const CancelToken& cancel) {
        return host.reserve(std::string(what), n_bytes, [&cancel] { return cancel.cancelled(); });
      };
    auto found = MusicService::open(music_options);
    if (!found) return report_failure(found.error());
    music = std::move(*found);
    if (const auto able = look_at_music(*music, flags.music.models); !able) return report_failure(able.error());
  }
  if (flags.serves_chat() && host.models().empty() && !music)
    return report_failure(Error(ErrorCode::kNotFound,
                                fmt::format("{} holds no model that can be served", flags.models_dir), "--models-dir"));
  // Clients of a socket that somebody else holds wait there; of our own they are told that the model is being loaded.
  while (!server_options.sockets.empty() && host.state() == ModelHost::State::kLoading)
    if (signals.wait(milliseconds(20))) return 0;
  auto server = Server::start(std::move(server_options), host, music.get());
  if (!server) {
    const Error& error = server.error();
    return error.code == ErrorCode::kInvalid ? usage_failure(error.message) : report_failure(error);
  }

  const milliseconds drain(static_cast<int64_t>(flags.drain_timeout_s * 1000));
  ServiceManager manager;
  milliseconds interval(1000);
  if (const auto alive = manager.alive_interval())
    interval = std::clamp(std::chrono::duration_cast<milliseconds>(*alive), milliseconds(1), interval);
  bool announced = false;
  std::optional<ServeConsole> console;
  while (true) {
    const std::optional<int> signal = signals.wait(announced ? interval : milliseconds(20));
    manager.tell_alive();
    // Without files to read again it means what it means to most programs: the terminal is gone.
    if (signal == SIGHUP && flags.reloadable()) {
      manager.tell("STATUS=reading keys, certificate and logs again");
      reload(flags, **server);
      manager.tell("STATUS=answering");
    } else if (signal || (console && console->ended())) {
      console.reset();  // Ctrl-C now ends the program
      manager.tell("STOPPING=1\nSTATUS=ending what runs");
      shut_down(**server, drain, signals);
      return 0;
    }
    if (announced || host.state() == ModelHost::State::kLoading) continue;
    if (const auto fault = host.fault()) return report_failure(*fault);
    announce(**server, host.models(), needs_key);
    manager.tell("READY=1\nSTATUS=answering");
    announced = true;
    if (!flags.console) continue;
    console.emplace(host, ConsoleOptions());
    interval = std::min(interval, milliseconds(100));
  }
}

int serve(const ServeFlags& flags, const CLI::App& app) {
  if (flags.model.list_devices) return print_devices();
  if (flags.print_config) {
    fmt::print("{}", print_config(app));
    return 0;
  }
  auto host_options = flags.serves_chat() ? flags.host() : Result<HostOptions>(HostOptions());
  if (!host_options) return report_failure(host_options.error());
  auto server_options = flags.server();
  if (!server_options) return report_failure(server_options.error());
  if (flags.check_config) {
    fmt::print("the configuration is valid\n");
    return 0;
  }
  if (const auto configured = configure_log(flags.log()); !configured) return report_failure(configured.error());
  if (flags.console && !flags.serves_chat())
    return usage_failure("--console talks with a language model: give -m FILE or --models-dir DIR");
  if (flags.budget_bytes() > 0 && flags.music.keep_models)
    return usage_failure("--keep-music-models keeps what --memory-budget is to give to others: give one of them");
  if ((flags.plan || flags.list_contexts) && flags.model.path.empty())
    return usage_failure("--plan and --list-contexts are about a language model: give -m FILE");
  if (flags.plan) return print_plan(host_options->service);
  if (flags.list_contexts) return print_contexts(host_options->service);
  server_options->sockets = take_passed_sockets();
  return serve_until_signal(flags, std::move(*host_options), std::move(*server_options));
}

}  // namespace

Command add_serve(CLI::App& root) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* app = root.add_subcommand("serve", "answer OpenAI-compatible requests over HTTP");
  add_serve_flags(*app, *flags);
  return {app, [flags, app] { return serve(*flags, *app); }};
}

}  // namespace hocket
