#include "cli/model_flags.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

namespace hocket {

RunnerOptions ModelFlags::runner() const {
  RunnerOptions options;
  options.n_ctx = n_ctx;
  options.n_cells = n_cells;
  options.n_batch = n_batch;
  options.n_checkpoints = n_checkpoints;
  options.n_threads = n_threads;
  // The flags accept nothing else.
  options.cache_k = parse_cache_type(cache_k).value_or(CacheType::kF16);
  options.cache_v = parse_cache_type(cache_v).value_or(CacheType::kF16);
  if (flash_attention == "on" || flash_attention == "1") options.flash_attention = FlashAttention::kOn;
  if (flash_attention == "off" || flash_attention == "0") options.flash_attention = FlashAttention::kOff;
  return options;
}

LoadOptions ModelFlags::load() const {
  LoadOptions options;
  options.device = device;
  options.repack = !no_repack;
  options.cpu_kernels = cpu_kernels;
  return options;
}

ModelSessionOptions ModelFlags::session() const {
  return {path, !no_mmap, load(), runner()};
}

Result<DraftOptions> ModelFlags::drafts() const {
  DraftOptions options;
  options.n_max = draft_max;
  options.n_min = draft_min;
  options.p_min = draft_p_min;
  const bool mtp_given = mtp != "auto" && mtp != "off";
  if (static_cast<int>(lookup) + static_cast<int>(!draft_model.empty()) + static_cast<int>(mtp_given) > 1)
    return Error(ErrorCode::kInvalid, "--lookup, --draft-model and --mtp exclude each other",
                 lookup ? "--lookup" : "--mtp");
  if (lookup) {
    options.kind = DraftOptions::Kind::kLookup;
  } else if (!draft_model.empty()) {
    options.kind = DraftOptions::Kind::kModel;
    options.model_path = draft_model;
  } else if (mtp_given) {
    options.kind = DraftOptions::Kind::kNextn;
    if (mtp != "on") options.model_path = mtp;
  } else if (mtp == "auto") {
    options.kind = DraftOptions::Kind::kNextnIfPresent;
  }
  if (draft_max && *draft_max < draft_min)
    return Error(ErrorCode::kInvalid, "--draft-min is more than --draft-max", "--draft-min");
  if (draft_max == std::size_t{0}) options.kind = DraftOptions::Kind::kNone;
  return options;
}

Result<void> ModelFlags::apply(ServiceOptions& options) const {
  options.model_path = path;
  options.use_mmap = !no_mmap;
  options.use_mlock = mlock;
  options.load = load();
  options.runner = runner();
  options.n_chunk = n_chunk;
  TRY_ASSIGN(options.drafts, drafts());
  return {};
}

CLI::Option* add_model_flag(CLI::App& app, ModelFlags& flags, bool positional) {
  return app.add_option(positional ? "-m,--model,FILE" : "-m,--model", flags.path, "GGUF model file");
}

void add_context_flag(CLI::App& app, ModelFlags& flags, const std::string& description) {
  app.add_option("-c,--ctx-size", flags.n_ctx, description)->transform(size_suffix());
}

void add_checkpoint_flag(CLI::App& app, ModelFlags& flags) {
  constexpr std::size_t kDefault = 8;
  flags.n_checkpoints = kDefault;
  app.add_option("--ctx-checkpoints", flags.n_checkpoints,
                 "states of recurrent models that are kept at ends of prompt chunks, to continue from")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--ubatch-size", flags.n_chunk, "tokens of one prompt in a step (short: -ub)")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
}

void add_runner_flags(CLI::App& app, ModelFlags& flags) {
  const CLI::IsMember cache_types({"f32", "f16", "bf16", "q8_0"});
  app.add_option("-b,--batch-size", flags.n_batch, "tokens that a step may have")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--cache-type-k", flags.cache_k, "type of cached keys: f32, f16, bf16, q8_0 (short: -ctk)")
      ->check(cache_types)
      ->capture_default_str();
  app.add_option("--cache-type-v", flags.cache_v, "type of cached values (short: -ctv)")
      ->check(cache_types)
      ->capture_default_str();
  app.add_option("--flash-attn", flags.flash_attention, "fused attention: auto, on, off (short: -fa)")
      ->check(CLI::IsMember({"auto", "on", "off", "1", "0"}))
      ->capture_default_str();
  app.add_flag("--no-mmap", flags.no_mmap, "read the weights into memory instead of mapping the file");
  app.add_flag("--no-repack", flags.no_repack, "keep the weights as they lie in the file");
  app.add_option("--cpu-kernels", flags.cpu_kernels,
                 "code of products on the CPU: auto, ggml, or kernels that `hocket --version` lists")
      ->capture_default_str();
  app.add_option("--device", flags.device, "device to run on, as --list-devices names it (default: the CPU)");
  app.add_flag("--list-devices", flags.list_devices, "list the devices and exit")->configurable(false);
}

void add_draft_flags(CLI::App& app, ModelFlags& flags) {
  const std::string group = "Drafts";
  app.add_option("--mtp", flags.mtp,
                 "draft with the model's NextN block: auto (where the file has one), on, off, or a FILE that holds it")
      ->type_name("auto|on|off|FILE")
      ->capture_default_str()
      ->group(group);
  app.add_option("--draft-model,--model-draft", flags.draft_model,
                 "smaller GGUF model of the same vocabulary that drafts tokens (short: -md)")
      ->group(group);
  app.add_flag("--lookup", flags.lookup, "draft what followed the last tokens earlier in the text")->group(group);
  app.add_option("--draft-max,--draft-n,--draft", flags.draft_max,
                 "most tokens of a draft (default: 3 from a model, 8 from the text)")
      ->check(CLI::Range(0, 64))
      ->group(group);
  app.add_option("--draft-min", flags.draft_min, "drafts of at least this many tokens, whether they seem to pay or not")
      ->check(CLI::Range(0, 64))
      ->capture_default_str()
      ->group(group);
  app.add_option("--draft-p-min,--draft-min-p", flags.draft_p_min,
                 "a model's draft ends before a token less probable than this")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->group(group);
}

CLI::Validator size_suffix() {
  CLI::Validator validator;
  validator.name("SIZE").operation([](std::string& text) -> std::string {
    std::string digits = text;
    std::size_t factor = 1;
    if (!digits.empty() && (digits.back() == 'K' || digits.back() == 'k')) factor = 1024;
    if (!digits.empty() && (digits.back() == 'M' || digits.back() == 'm')) factor = 1024 * 1024;
    if (factor != 1) digits.pop_back();
    constexpr std::size_t kMostDigits = 9;
    if (digits.empty() || digits.size() > kMostDigits || digits.find_first_not_of("0123456789") != std::string::npos) {
      return fmt::format("\"{}\" is not a size such as 4096 or 4K", text);
    }
    text = std::to_string(std::stoull(digits) * factor);
    return {};
  });
  return validator;
}

std::vector<std::string> expand_short_flags(int argc, char** argv) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kLongNames{{{"-ctk", "--cache-type-k"},
                                                                                            {"-ctv", "--cache-type-v"},
                                                                                            {"-fa", "--flash-attn"},
                                                                                            {"-md", "--draft-model"},
                                                                                            {"-np", "--parallel"},
                                                                                            {"-ub", "--ubatch-size"},
                                                                                            {"-to", "--timeout"},
                                                                                            {"-sys", "--system"}}};
  std::vector<std::string> out;
  bool flags = true;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--") flags = false;
    for (const auto& [brief, name] : kLongNames) {
      if (!flags) break;
      if (word == brief || word.compare(0, brief.size() + 1, std::string(brief) + "=") == 0) {
        word = std::string(name) + word.substr(brief.size());
        break;
      }
    }
    out.push_back(std::move(word));
  }
  return out;
}

int print_devices() {
  for (const DeviceInfo& device : list_devices()) {
    fmt::print("{:<12} {:<6} {} ({} of {} MiB free)\n", device.name, device.kind, device.description,
               device.memory_free_bytes >> 20, device.memory_total_bytes >> 20);
  }
  return 0;
}

Result<void> require_model(const ModelFlags& flags) {
  if (!flags.path.empty()) return {};
  return Error(ErrorCode::kInvalid, "no model was named: give FILE, -m FILE, or set HOCKET_MODEL", "--model");
}

}  // namespace hocket
