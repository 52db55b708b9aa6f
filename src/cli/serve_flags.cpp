#include "cli/serve_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <sstream>
#include <utility>

#include "cli/sampling_flags.h"
#include "cli/text_input.h"
#include "engine/build_info.h"

namespace hocket {
namespace {

std::chrono::milliseconds seconds(double s) {
  return std::chrono::milliseconds(static_cast<int64_t>(s * 1000));
}

// One key a line; empty lines and lines that begin with # are skipped.
Result<void> read_keys(const std::string& path, std::vector<std::string>& keys) {
  TRY_ASSIGN(const std::string text, read_text(path));
  std::istringstream lines(text);
  const std::size_t n_before = keys.size();
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    keys.push_back(line.substr(first, line.find_last_not_of(" \t\r") - first + 1));
  }
  if (keys.size() == n_before) return Error(ErrorCode::kInvalid, path + " holds no API key", "--api-key-file");
  return {};
}

}  // namespace

Result<ServiceOptions> ServeFlags::service() const {
  if (models_dir.empty()) TRY(require_model(model));
  TRY(check_sampling_flags(defaults));
  ServiceOptions options;
  TRY(model.apply(options));
  std::copy_if(aliases.begin(), aliases.end(), std::back_inserter(options.aliases),
               [](const std::string& alias) { return alias.find('=') == std::string::npos; });
  if (!options.aliases.empty() && model.path.empty())
    return Error(ErrorCode::kInvalid,
                 fmt::format("without -m an alias must say of which model it is: {}=MODEL", options.aliases.front()),
                 "--alias");
  options.chat_template = chat_template;
  if (!chat_template_file.empty()) {
    if (!chat_template.empty()) {
      return Error(ErrorCode::kInvalid, "--chat-template and --chat-template-file exclude each other",
                   "--chat-template");
    }
    TRY_ASSIGN(options.chat_template, read_text(chat_template_file));
  }
  options.pooling = pooling;
  options.defaults = defaults;
  options.n_parallel = n_parallel;
  options.max_queue = max_queue;
  options.queue_timeout_ms = queue_timeout_s * 1000;
  options.request_timeout_ms = timeout_s * 1000;
  options.flow_timeout_ms = flow_timeout_s * 1000;
  options.max_n = max_n;
  options.sessions.folder = session_dir;
  options.sessions.most_ram_bytes = session_cache_mib << 20;
  options.sessions.most_disk_bytes = session_disk_mib << 20;
  return options;
}

Result<HostOptions> ServeFlags::host() const {
  HostOptions options;
  TRY_ASSIGN(options.service, service());
  options.folder = models_dir;
  for (const std::string& alias : aliases) {
    const std::size_t at = alias.find('=');
    if (at == std::string::npos) continue;
    if (at == 0 || at + 1 == alias.size() || models_dir.empty())
      return Error(ErrorCode::kInvalid, fmt::format("{} must be NAME=MODEL, of a model of --models-dir", alias),
                   "--alias");
    options.aliases.emplace_back(alias.substr(0, at), alias.substr(at + 1));
  }
  options.most_models = models_max;
  options.most_bytes = budget_bytes();
  if (keep_alive_s >= 0) options.keep_alive = seconds(keep_alive_s);
  return options;
}

Result<ServerOptions> ServeFlags::server() const {
  ServerOptions options;
  options.hosts = hosts;
  options.port = port;
  TRY_ASSIGN(options.api_keys, keys());
  options.ssl_cert_file = ssl_cert_file;
  options.ssl_key_file = ssl_key_file;
  options.metrics_log = metrics_log;
  options.insecure = insecure;
  options.cors_origins = cors_origins;
  options.allowed_hosts = allowed_hosts;
  options.strict_fields = strict_fields;
  options.any_model = any_model;
  options.ping_interval = seconds(ping_interval_s);
  options.build_info = version_line();
  options.limits.max_n = max_n;
  options.limits.max_connections = max_connections;
  options.limits.max_connections_per_address = max_connections_per_address;
  return options;
}

Result<std::vector<std::string>> ServeFlags::keys() const {
  std::vector<std::string> all = api_keys;
  if (!api_key_file.empty()) TRY(read_keys(api_key_file, all));
  return all;
}

bool ServeFlags::reloadable() const {
  return !api_key_file.empty() || !ssl_cert_file.empty() || !log_file.empty() || !metrics_log.empty();
}

LogOptions ServeFlags::log() const {
  LogOptions options;
  // What is said in the terminal is not to drown.
  const LogLevel usual = console && log_file.empty() ? LogLevel::kWarn : LogLevel::kInfo;
  options.level = verbose ? LogLevel::kDebug : usual;
  options.format = log_format == "json" ? LogFormat::kJson : LogFormat::kText;
  options.file = log_file;
  return options;
}

void add_serve_flags(CLI::App& app, ServeFlags& flags) {
  add_model_flag(app, flags.model, false);
  app.add_option("-a,--alias", flags.aliases,
                 "names of the model for clients, the first is the one shown; NAME=MODEL: of one of --models-dir")
      ->delimiter(',');
  add_context_flag(app, flags.model, "context in tokens: 4096, 4K, … (default: the model's own, at most 8K)");
  app.add_option("-t,--threads", flags.model.n_threads, "threads (default: the physical cores)")
      ->check(CLI::Range(1, 1024));
  add_runner_flags(app, flags.model);
  add_checkpoint_flag(app, flags.model);
  app.add_option("--parallel", flags.n_parallel, "requests that are answered side by side (default: 8; short: -np)")
      ->check(CLI::Range(1, 32));
  app.add_option(
         "--cache-cells", flags.model.n_cells,
         "tokens that the cache holds, all requests together (default: the context times --parallel, at most 4)")
      ->transform(size_suffix());
  app.add_flag("--mlock", flags.model.mlock, "keep the mapped weights in memory");
  app.add_option("--chat-template", flags.chat_template, "Jinja text that replaces the model's own template");
  app.add_option("--chat-template-file", flags.chat_template_file, "the same from a file");
  app.add_option("--pooling", flags.pooling, "how embeddings are made of hidden states: mean, last, cls")
      ->check(CLI::IsMember({"mean", "last", "cls"}));

  const std::string models = "Models";
  const CLI::Range mib_range(std::size_t{0}, std::size_t{1} << 30);
  app.add_option("--models-dir", flags.models_dir,
                 "folder whose GGUF files are served too: each is loaded when a request names it")
      ->group(models);
  app.add_option("--models-max", flags.models_max,
                 "models in memory at a time; the one that was used longest ago makes room; 0: no limit")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str()
      ->group(models);
  app.add_option("--memory-budget", flags.memory_budget_mib,
                 "MiB that models and music in memory may take as planned, together; 0: no limit")
      ->check(mib_range)
      ->capture_default_str()
      ->group(models);
  app.add_option("--keep-alive", flags.keep_alive_s,
                 "seconds without a request after which a model is unloaded, until the next request; -1: never")
      ->check(CLI::Range(-1.0, 1e9))
      ->capture_default_str()
      ->group(models);

  const std::string network = "Network";
  const CLI::Range port_range(0, 65535);
  const CLI::Range seconds_range(0.0, 1e9);
  app.add_option("--host", flags.hosts, "address to listen on, or a path that ends in .sock")
      ->delimiter(',')
      ->capture_default_str()
      ->group(network);
  app.add_option("--port", flags.port, "port; 0 takes a free one")
      ->check(port_range)
      ->capture_default_str()
      ->group(network);
  app.add_option("--api-key", flags.api_keys, "key that clients must send; may be given several times")
      ->delimiter(',')
      ->group(network);
  app.add_option("--api-key-file", flags.api_key_file, "file with one key a line")->group(network);
  app.add_option("--ssl-cert-file", flags.ssl_cert_file, "PEM certificate chain: serve https")->group(network);
  app.add_option("--ssl-key-file", flags.ssl_key_file, "PEM private key of the certificate")->group(network);
  app.add_flag("--insecure", flags.insecure, "let other machines in without a key")->group(network);
  app.add_option("--cors-origins", flags.cors_origins, "web origins that may call, separated by commas; * for all")
      ->delimiter(',')
      ->group(network);
  app.add_option("--allowed-hosts", flags.allowed_hosts, "more names that clients may use for this machine")
      ->delimiter(',')
      ->group(network);
  app.add_option("--max-connections", flags.max_connections, "connections at a time")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str()
      ->group(network);

  app.add_option("--max-connections-per-address", flags.max_connections_per_address,
                 "connections at a time from one address; 0: no limit")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str()
      ->group(network);

  const std::string requests = "Requests";
  app.add_flag("--any-model", flags.any_model, "answer whatever model a request names")->group(requests);
  app.add_flag("--strict-fields", flags.strict_fields, "refuse requests with fields that are not known")
      ->group(requests);
  app.add_option("--max-n", flags.max_n, "most choices of one request")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->group(requests);
  app.add_option("--max-queue", flags.max_queue, "requests that may wait")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str()
      ->group(requests);
  app.add_option("--queue-timeout", flags.queue_timeout_s, "seconds that a request may wait; 0: no limit")
      ->check(seconds_range)
      ->capture_default_str()
      ->group(requests);
  app.add_option("--timeout", flags.timeout_s, "seconds that a request may take; 0: no limit (short: -to)")
      ->check(seconds_range)
      ->capture_default_str()
      ->group(requests);
  app.add_option("--flow-timeout", flags.flow_timeout_s,
                 "seconds that a client may take to acknowledge a chunk (flow_control \"ack\"); 0: no limit")
      ->check(seconds_range)
      ->capture_default_str()
      ->group(requests);
  app.add_option("--sse-ping-interval", flags.ping_interval_s, "seconds of silence on a stream before a ping; 0: never")
      ->check(seconds_range)
      ->capture_default_str()
      ->group(requests);
  app.add_option("--drain-timeout", flags.drain_timeout_s, "seconds that running requests get at the end")
      ->check(seconds_range)
      ->capture_default_str()
      ->group(requests);
  const std::string sessions = "Sessions";
  app.add_option("--session-dir", flags.session_dir,
                 "folder where sessions (session_id of a request) outlive the server; one server at a time uses it")
      ->group(sessions);
  app.add_option("--session-cache-mib", flags.session_cache_mib, "MiB of memory that saved sessions take at most")
      ->check(mib_range)
      ->capture_default_str()
      ->group(sessions);
  app.add_option("--session-disk-mib", flags.session_disk_mib, "MiB of disk that saved sessions take at most")
      ->check(mib_range)
      ->capture_default_str()
      ->group(sessions);
  add_music_serve_flags(app, flags.music);
  add_draft_flags(app, flags.model);
  add_sampling_flags(app, flags.defaults);

  const std::string operation = "Operation";
  app.add_option("--log-file", flags.log_file, "write the log there instead of standard error")->group(operation);
  app.add_option("--log-format", flags.log_format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str()
      ->group(operation);
  app.add_option("--metrics-log", flags.metrics_log, "append a JSON line with the numbers of each reply to this file")
      ->group(operation);
  app.add_flag("--console", flags.console,
               "chat in this terminal, too, as `hocket run` does; its end (/quit, Ctrl-D) ends the server")
      ->group(operation);
  app.add_flag("-v,--verbose", flags.verbose, "log details")->group(operation);
  app.add_flag("--plan", flags.plan, "print how much memory the model will take, and exit")
      ->configurable(false)
      ->group(operation);
  app.add_flag("--list-contexts", flags.list_contexts, "print the memory at 4K to 256K tokens of context, and exit")
      ->configurable(false)
      ->group(operation);
  app.add_flag("--check-config", flags.check_config, "check flags, environment and config file, and exit")
      ->configurable(false)
      ->group(operation);
  app.add_flag("--print-config", flags.print_config, "print the settings as a config file, and exit")
      ->configurable(false)
      ->group(operation);
}

}  // namespace hocket
