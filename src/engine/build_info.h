// engine/build_info.h: what this program was built from and with.
//
// Threads  pure functions.
#pragma once

#include <string>

namespace hocket {

struct BuildInfo {
  std::string version;   // "0.1.0"
  std::string commit;    // abbreviated, "unknown" outside a checkout
  int build_number = 0;  // commits up to this one
  std::string compiler;
  std::string build_type;
  std::string ggml_version;
  std::string cpu_features;  // of ggml
  std::string kernels;       // our own, best first
};

const BuildInfo& build_info();

// "hocket 0.1.0 (1a2b3c4)".
std::string version_line();
// version_line() and one line each for the rest, as `hocket --version` prints it.
std::string version_text();

}  // namespace hocket
