// cli/model_flags.h: flags that several commands share: the model, its memory and threads.
//
// Threads  the main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/chat_service.h"
#include "engine/model_session.h"

namespace hocket {

struct ModelFlags {
  std::string path;
  std::size_t n_ctx = 0;
  std::size_t n_cells = 0;
  int n_threads = 0;
  std::size_t n_batch = 512;
  std::size_t n_chunk = 128;
  std::size_t n_checkpoints = 0;
  std::string cache_k = "f16";
  std::string cache_v = "f16";
  std::string flash_attention = "auto";
  bool no_mmap = false;
  bool mlock = false;
  bool no_repack = false;
  std::string cpu_kernels = "auto";
  std::string device;
  bool list_devices = false;
  std::string draft_model;
  std::string mtp = "auto";
  bool lookup = false;
  std::optional<std::size_t> draft_max;
  std::size_t draft_min = 0;
  float draft_p_min = DraftOptions().p_min;

  RunnerOptions runner() const;
  LoadOptions load() const;
  ModelSessionOptions session() const;
  // kInvalid names the flag.
  Result<DraftOptions> drafts() const;
  Result<void> apply(ServiceOptions& options) const;
};

// -m/--model, and as a positional argument too where `positional` says so ("FILE").
CLI::Option* add_model_flag(CLI::App& app, ModelFlags& flags, bool positional);
// -c, -t, -b, -ctk, -ctv, -fa, --no-mmap, …
void add_runner_flags(CLI::App& app, ModelFlags& flags);
// --ctx-checkpoints and --ubatch-size, for commands that keep conversations.
void add_checkpoint_flag(CLI::App& app, ModelFlags& flags);
void add_context_flag(CLI::App& app, ModelFlags& flags, const std::string& description);
// --mtp, --draft-model, --lookup, …: several tokens a step.
void add_draft_flags(CLI::App& app, ModelFlags& flags);

// Numbers with an optional K (1024) or M: 4096, 4K, 256K.
CLI::Validator size_suffix();
// llama.cpp's flags of several letters behind one dash (-ctk, -ctv, -fa, -md, -to, -sys) become their long names.
std::vector<std::string> expand_short_flags(int argc, char** argv);

// Prints the devices that --device accepts.
int print_devices();
// Checks that a model was named: by flag, position, HOCKET_MODEL or the config file.
Result<void> require_model(const ModelFlags& flags);

}  // namespace hocket
