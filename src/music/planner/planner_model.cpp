#include "music/planner/planner_model.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "compute/device.h"
#include "compute/kernels/kernel_table.h"
#include "lm/loaded_model.h"
#include "music/blocks/layer_sizes.h"
#include "music/model_file.h"
#include "weights/weight_source.h"

namespace hocket {
namespace {

constexpr int64_t kMostLayers = 64;

// Parts of a layer: what lm/ calls them, and what the file calls them.
constexpr std::array<std::array<std::string_view, 2>, 11> kOfLayer{{{"attn_norm", "input_layernorm"},
                                                                    {"attn_q", "self_attn.q_proj"},
                                                                    {"attn_k", "self_attn.k_proj"},
                                                                    {"attn_v", "self_attn.v_proj"},
                                                                    {"attn_output", "self_attn.o_proj"},
                                                                    {"attn_q_norm", "self_attn.q_norm"},
                                                                    {"attn_k_norm", "self_attn.k_norm"},
                                                                    {"ffn_norm", "post_attention_layernorm"},
                                                                    {"ffn_gate", "mlp.gate_proj"},
                                                                    {"ffn_up", "mlp.up_proj"},
                                                                    {"ffn_down", "mlp.down_proj"}}};

// "blk.3.attn_q.weight" of lm/ is "model.layers.3.self_attn.q_proj.weight" of the file.
class PlannerWeights : public FileWeights {
 public:
  using FileWeights::FileWeights;
  const TensorInfo* find(std::string_view name, const Shape& wanted, bool optional) override {
    return FileWeights::find(file_name(name), wanted, optional);
  }

 private:
  static std::string file_name(std::string_view name) {
    if (name == "token_embd.weight") return "model.embed_tokens.weight";
    if (name == "output_norm.weight") return "model.norm.weight";
    if (name == "output.weight") return "lm_head.weight";
    if (name.starts_with("blk.")) {
      const std::size_t dot = name.find('.', 4);
      const std::size_t end = name.rfind('.');
      if (dot != std::string_view::npos && end > dot) {
        const std::string_view part = name.substr(dot + 1, end - dot - 1);
        for (const auto& [ours, theirs] : kOfLayer)
          if (part == ours)
            return fmt::format("model.layers.{}.{}{}", name.substr(4, dot - 4), theirs, name.substr(end));
      }
    }
    return std::string(name);
  }
};

// Missing tensors are reported under the names of the file.
Result<void> require_layers(const GgufFile& file, int64_t n_layer) {
  for (int64_t il = 0; il < n_layer; ++il)
    for (const auto& [ours, theirs] : kOfLayer)
      TRY(require_tensor(file, fmt::format("model.layers.{}.{}.weight", il, theirs)));
  TRY(require_tensor(file, "model.norm.weight"));
  return {};
}

// A number of `acestep.config_json`, of the file's own key, or that of the smallest published model.
struct ConfigValue {
  const char* json_key;
  const char* key;
  double published;
};
constexpr std::array<ConfigValue, 8> kConfig{{{"hidden_size", "embedding_length", 1024},
                                              {"intermediate_size", "feed_forward_length", 3072},
                                              {"num_attention_heads", "attention.head_count", 16},
                                              {"num_key_value_heads", "attention.head_count_kv", 8},
                                              {"head_dim", "attention.key_length", 128},
                                              {"num_hidden_layers", "block_count", 28},
                                              {"rope_theta", "rope.freq_base", 1e6},
                                              {"rms_norm_eps", "attention.layer_norm_rms_epsilon", 1e-6}}};

Result<double> config_number(const Json& config, const Metadata& file, const ConfigValue& value) {
  if (const auto at = config.find(value.json_key); at != config.end()) {
    if (!at->is_number())
      return Error(ErrorCode::kBadModel, fmt::format("acestep.config_json: {} is no number", value.json_key),
                   "acestep.config_json");
    return at->get<double>();
  }
  const std::string key = fmt::format("{}.{}", music_architecture(MusicFileKind::kLanguageModel), value.key);
  return file.number_or(key, value.published);
}

}  // namespace

Result<Metadata> planner_metadata(const Metadata& file) {
  constexpr int64_t kContext = 40'960;
  constexpr double kLargest = 1 << 24;
  TRY_ASSIGN(const std::string text, file.string_or("acestep.config_json", "{}"));
  const auto config = parse_json(text);
  if (!config.ok() || !config->is_object())
    return Error(ErrorCode::kBadModel, "acestep.config_json is no JSON object", "acestep.config_json");
  Metadata qwen3;
  qwen3.set("general.architecture", std::string("qwen3"));
  qwen3.set("qwen3.context_length", kContext);
  for (const ConfigValue& value : kConfig) {
    TRY_ASSIGN(const double number, config_number(*config, file, value));
    const std::string key = fmt::format("qwen3.{}", value.key);
    const bool real = value.published != static_cast<double>(static_cast<int64_t>(value.published)) ||
                      std::string_view(value.json_key) == "rope_theta";
    if (real) {
      qwen3.set(key, number);
    } else if (number >= 1 && number <= kLargest) {
      qwen3.set(key, static_cast<int64_t>(number));
    } else {
      return Error(ErrorCode::kBadModel, fmt::format("acestep.config_json: {} is {}", value.json_key, number),
                   "acestep.config_json");
    }
    if (std::string_view(value.json_key) == "head_dim")
      qwen3.set("qwen3.attention.value_length", static_cast<int64_t>(number));
  }
  return qwen3;
}

Result<std::unique_ptr<PlannerModel>> PlannerModel::load(const std::string& path, const PlannerOptions& options) {
  return open(path, options, /*with_weights=*/true);
}

Result<std::unique_ptr<PlannerModel>> PlannerModel::declare(const std::string& path, const PlannerOptions& options) {
  return open(path, options, /*with_weights=*/false);
}

RunnerOptions PlannerModel::runner_options(std::size_t n_seqs, std::size_t n_tokens) const {
  RunnerOptions options;
  options.n_ctx = n_tokens;
  options.n_seqs = n_seqs;
  options.n_threads = options_.n_threads;
  // On the CPU flash attention adds up in half precision, which shows after hundreds of codes.
  options.flash_attention = FlashAttention::kOff;
  return options;
}

Result<std::unique_ptr<PlannerModel>> PlannerModel::open(const std::string& path, const PlannerOptions& options,
                                                         bool with_weights) {
  std::unique_ptr<PlannerModel> planner(new PlannerModel);
  planner->options_ = options;
  TRY_ASSIGN(planner->file_, open_music_file(path, MusicFileKind::kLanguageModel));
  const TensorInfo* table = planner->file_->find("model.embed_tokens.weight");
  if (!table)
    return Error(ErrorCode::kBadModel, "tensor model.embed_tokens.weight is missing", "model.embed_tokens.weight");
  if (table->ne[1] <= kFirstAudioCode)
    return Error(
        ErrorCode::kBadModel,
        fmt::format("the vocabulary has {} ids and no audio codes, which begin at {}", table->ne[1], kFirstAudioCode),
        "model.embed_tokens.weight");
  TRY_ASSIGN(planner->tokenizer_, MusicTokenizer::load(planner->file_->metadata()));
  TRY_ASSIGN(planner->rules_, MetadataRules::build(*planner->tokenizer_));
  TRY_ASSIGN(const Metadata metadata, planner_metadata(planner->file_->metadata()));
  TRY_ASSIGN(const int64_t n_layer, metadata.integer("qwen3.block_count", 1, kMostLayers));
  TRY(require_layers(*planner->file_, n_layer));
  LoadedModel::DeclareOptions declare;
  TRY_ASSIGN(declare.device, find_device(options.device));
  declare.kernels = find_kernels("auto");
  declare.n_vocab = table->ne[1];
  TRY_ASSIGN(auto model, LoadedModel::declare(metadata, std::make_shared<PlannerWeights>(planner->file_), declare));
  if (with_weights) {
    TRY(model->weights().load());
  } else {
    model->weights().place_without_data();
  }
  planner->model_ = std::move(model);
  return planner;
}

}  // namespace hocket
