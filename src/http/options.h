// http/options.h: what the server listens on, whom it lets in, and its limits.
//
// Threads  plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace hocket {

struct HttpLimits {
  // Connections. Beyond them a small reserve still answers health and control calls.
  std::size_t max_connections = 1024;
  std::size_t max_connections_per_address = 64;  // 0: no limit; does not apply to a unix socket
  std::size_t reserved_connections = 32;

  // Request heads.
  std::chrono::milliseconds head_timeout{10'000};  // from the first byte of the head, or from accept
  std::size_t max_head_bytes = 64 * 1024;
  std::size_t max_head_lines = 100;
  std::size_t max_line_bytes = 8 * 1024;
  std::size_t max_target_bytes = 8 * 1024;

  // Bodies. After the grace time the average must reach the minimum rate.
  std::size_t max_body_bytes = 16 * 1024 * 1024;
  std::size_t max_state_bytes = 512 * 1024 * 1024;   // of a session that is imported
  std::size_t max_upload_bytes = 256 * 1024 * 1024;  // of a body with sounds in it
  std::size_t max_parts = 16;
  std::size_t min_body_bytes_per_second = 1024;
  std::chrono::milliseconds body_grace{10'000};
  std::chrono::milliseconds read_timeout{30'000};  // between two reads

  std::chrono::milliseconds keep_alive{60'000};
  std::chrono::milliseconds write_stall{30'000};  // a client that takes nothing for so long is gone

  // Contents.
  JsonLimits json;
  std::size_t max_messages = 4096;
  std::size_t max_tools = 256;
  std::size_t max_tool_bytes = 256 * 1024;  // all definitions together
  std::size_t max_schema_depth = 32;
  std::size_t max_grammar_bytes = 256 * 1024;
  std::size_t max_stop_strings = 16;
  std::size_t max_stop_bytes = 256;
  int max_n = 8;
  int max_top_logprobs = 20;
  std::size_t max_logit_bias = 1024;
  std::size_t max_inputs = 2048;  // prompts or embedding inputs of one request
};

struct ServerOptions {
  // Addresses to listen on. "localhost" is 127.0.0.1 and, where the machine has it, ::1. One entry that ends in ".sock"
  // or contains '/' is the path of a unix socket.
  std::vector<std::string> hosts{"127.0.0.1"};
  int port = 8080;  // 0: any free port
  // Listening sockets that somebody else opened, used in place of hosts and port. They are the server's from then on;
  // it closes its descriptors but leaves the sockets themselves listening, for those who share them.
  std::vector<int> sockets;
  std::vector<std::string> api_keys;
  bool insecure = false;                   // allow other machines without a key
  std::vector<std::string> cors_origins;   // exact origins, or "*" for any (never with credentials)
  std::vector<std::string> allowed_hosts;  // more names that a Host header may carry while listening on loopback only
  bool strict_fields = false;              // refuse request fields that are not known
  bool any_model = false;                  // answer whatever `model` the client names
  std::chrono::milliseconds ping_interval{10'000};  // of silence on a stream; 0: never
  std::string build_info;                           // shown by /props
  std::string ssl_cert_file, ssl_key_file;          // both or none: TLS on every address but unix sockets
  std::string metrics_log;                          // file for a JSON line a reply; "": none
  HttpLimits limits;
};

}  // namespace hocket
