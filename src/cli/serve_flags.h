// cli/serve_flags.h: the flags of `hocket serve`, and what they mean for service and server.
//
// Threads  the main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "cli/model_flags.h"
#include "cli/music_serve_flags.h"
#include "engine/model_host.h"
#include "http/options.h"

namespace hocket {

struct ServeFlags {
  ModelFlags model;
  std::vector<std::string> hosts{"127.0.0.1"};
  int port = 8080;
  std::vector<std::string> api_keys;
  std::string api_key_file;
  std::string ssl_cert_file;
  std::string ssl_key_file;
  bool insecure = false;
  std::vector<std::string> cors_origins;
  std::vector<std::string> allowed_hosts;
  std::vector<std::string> aliases;  // NAME, or NAME=MODEL of models_dir
  std::string models_dir;
  std::size_t models_max = 0;
  std::size_t memory_budget_mib = 0;
  double keep_alive_s = -1;
  std::string chat_template;
  std::string chat_template_file;
  std::string pooling;
  bool any_model = false;
  bool strict_fields = false;
  std::size_t n_parallel = 0;
  int max_n = 8;
  std::size_t max_queue = 64;
  std::size_t max_connections = 1024;
  std::size_t max_connections_per_address = 64;
  double queue_timeout_s = 600;
  double timeout_s = 3600;
  double flow_timeout_s = 120;
  std::string session_dir;
  std::size_t session_cache_mib = 1024;
  std::size_t session_disk_mib = 8192;
  double ping_interval_s = 10;
  double drain_timeout_s = 30;
  std::string log_file;
  std::string log_format = "text";
  std::string metrics_log;
  bool verbose = false;
  bool console = false;
  bool plan = false;
  bool list_contexts = false;
  bool check_config = false;
  bool print_config = false;
  GenerationParams defaults;
  MusicServeFlags music;

  // A server for music needs no language model.
  bool serves_chat() const { return !model.path.empty() || !models_dir.empty() || !music.enabled(); }
  std::size_t budget_bytes() const { return memory_budget_mib << 20; }
  Result<HostOptions> host() const;
  // kInvalid names the flag; kIo for files that cannot be read.
  Result<ServiceOptions> service() const;
  Result<ServerOptions> server() const;
  // Keys from the flags, then those of the key file as it is now.
  Result<std::vector<std::string>> keys() const;
  // Whether SIGHUP has something to read again.
  bool reloadable() const;
  LogOptions log() const;
};

void add_serve_flags(CLI::App& app, ServeFlags& flags);

}  // namespace hocket
