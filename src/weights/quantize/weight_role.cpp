#include "weights/quantize/weight_role.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <utility>

namespace hocket {
namespace {

using Role = WeightRole;

bool contains_any(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

// As ggml counts them.
int n_dimensions(const TensorInfo& tensor) {
  int n = static_cast<int>(tensor.ne.size());
  while (n > 1 && tensor.ne[static_cast<std::size_t>(n - 1)] == 1) --n;
  return n;
}

}  // namespace

Result<RecipeModel> RecipeModel::read(const GgufFile& file) {
  const Metadata& m = file.metadata();
  TRY_ASSIGN(const std::string type, m.string_or("general.type", "model"));
  if (type == "imatrix" || type == "adapter")
    return Error(ErrorCode::kUnsupported, fmt::format("a file of type {} has no weights to quantise", type),
                 "general.type");
  TRY_ASSIGN(const std::string arch, m.string("general.architecture"));
  RecipeModel model;
  if (arch == "acestep-vae")
    return Error(ErrorCode::kUnsupported, "the VAE of ACE-Step stays as it is: nothing of it is ever quantised",
                 "general.architecture");
  if (arch == "acestep-text-enc") {
    model.kind = Kind::kMusicText;
  } else if (arch.starts_with("acestep-")) {
    model.kind = Kind::kMusic;
  }
  TRY_ASSIGN(model.n_layer, m.integer_or(arch + ".block_count", 0, 0));
  TRY_ASSIGN(model.n_expert, m.integer_or(arch + ".expert_count", 0, 0));
  // Where layers differ, the most that any of them shares.
  const auto n_layer = static_cast<std::size_t>(std::min<int64_t>(model.n_layer, 4096));
  TRY_ASSIGN(const auto heads, m.per_layer(arch + ".attention.head_count", n_layer, 0, 0, INT64_MAX));
  TRY_ASSIGN(const auto kv_heads, m.per_layer(arch + ".attention.head_count_kv", n_layer, 0, 0, INT64_MAX));
  for (std::size_t il = 0; il < n_layer; ++il)
    if (kv_heads[il] > 0) model.heads_per_kv_head = std::max(model.heads_per_kv_head, heads[il] / kv_heads[il]);
  model.tied = file.find("output.weight") == nullptr;
  return model;
}

bool may_quantise(const RecipeModel& model, const TensorInfo& tensor) {
  const std::string_view name = tensor.name;
  if (n_dimensions(tensor) < 2) return false;
  if (model.kind == RecipeModel::Kind::kMusicText && name.find("embed_tokens") != std::string_view::npos) return false;
  if (model.kind != RecipeModel::Kind::kLanguage)
    return !contains_any(name, {"silence_latent", "scale_shift_table", "null_condition_emb"});
  // Small ones that steer much: routers, convolutions over time, tables of positions, gates of single layers.
  return name.ends_with(".weight") &&
         !contains_any(name, {"_norm.", "ffn_gate_inp", "ssm_conv1d", "shortconv.conv", "position_embd", "token_types",
                              "attn_rel_b", "altup", "laurel", "per_layer_model_proj", "exp_probs_b"});
}

WeightRole weight_role(const RecipeModel& model, const TensorInfo& tensor) {
  const std::string_view name = tensor.name;
  if (model.kind != RecipeModel::Kind::kLanguage) {
    if (name.find("v_proj.weight") != std::string_view::npos) return Role::kValue;
    if (name.find("down_proj.weight") != std::string_view::npos) return Role::kDown;
    if (name.find("o_proj.weight") != std::string_view::npos) return Role::kAttentionOut;
    if (name.find("embed_tokens.weight") != std::string_view::npos) return Role::kEmbedding;
    return Role::kOther;
  }
  if (name == "output.weight") return Role::kHead;
  if (name == "token_embd.weight") return model.tied ? Role::kHead : Role::kEmbedding;
  const std::pair<std::string_view, Role> roles[] = {
      {"attn_qkv.", Role::kQkv}, {"attn_q.", Role::kQuery},    {"attn_k.", Role::kKey},
      {"attn_v.", Role::kValue}, {"attn_kv_b.", Role::kValue}, {"attn_v_b.", Role::kValue},
      {"ffn_gate", Role::kGate}, {"ffn_up", Role::kUp},        {"attn_output.", Role::kAttentionOut},
      {"ffn_down", Role::kDown}};
  for (const auto& [part, role] : roles)
    if (name.find(part) != std::string_view::npos) return role;
  return Role::kOther;
}

std::optional<int64_t> weight_layer(std::string_view name) {
  for (const std::string_view prefix : {"blk.", "layers."}) {
    const std::size_t at = name.find(prefix);
    if (at == std::string_view::npos) continue;
    const char* first = name.data() + at + prefix.size();
    int64_t layer = 0;
    const auto [end, error] = std::from_chars(first, name.data() + name.size(), layer);
    if (error == std::errc() && end != first && layer >= 0) return layer;
  }
  return std::nullopt;
}

}  // namespace hocket
