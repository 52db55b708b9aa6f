#include "music/dit/dit_file.h"

#include <fmt/format.h>

#include <cmath>

#include "music/model_file.h"

namespace hocket {
namespace {

constexpr int64_t kMostLayers = 64;
constexpr int64_t kMostCodes = 1 << 30;

Result<std::vector<int64_t>> read_levels(const Metadata& metadata, const std::vector<int64_t>& usual) {
  TRY_ASSIGN(const std::vector<int64_t>* levels, metadata.integers("acestep.fsq_input_levels"));
  if (!levels) return usual;
  int64_t product = 1;
  for (const int64_t level : *levels) {
    if (level < 2 || level > 1024 || product * level > kMostCodes)
      return Error(ErrorCode::kBadModel, "acestep.fsq_input_levels holds levels that cannot be",
                   "acestep.fsq_input_levels");
    product *= level;
  }
  if (levels->empty())
    return Error(ErrorCode::kBadModel, "acestep.fsq_input_levels is empty", "acestep.fsq_input_levels");
  return *levels;
}

Result<DitConfig> read_config(const GgufFile& file) {
  const Metadata& m = file.metadata();
  const std::string arch(music_architecture(MusicFileKind::kDit));
  DitConfig c;
  TRY_ASSIGN(c.n_channels, m.integer("acestep.audio_acoustic_hidden_dim", 1, 4096));
  TRY_ASSIGN(const int64_t n_in, m.integer("acestep.in_channels", 1, 3 * 4096));
  if (n_in != 3 * c.n_channels)
    return Error(ErrorCode::kBadModel,
                 fmt::format("acestep.in_channels is {}: source, mask and noise of {} channels need {}", n_in,
                             c.n_channels, 3 * c.n_channels),
                 "acestep.in_channels");
  TRY_ASSIGN(c.patch, m.integer("acestep.patch_size", 1, 64));
  TRY_ASSIGN(c.window, m.integer("acestep.sliding_window", 1, 1 << 20));
  TRY_ASSIGN(const int64_t n_layer, m.integer(arch + ".block_count", 1, kMostLayers));
  c.n_layer = static_cast<std::size_t>(n_layer);
  TRY_ASSIGN(const double base, m.number(arch + ".rope.freq_base"));
  TRY_ASSIGN(const double eps, m.number(arch + ".attention.layer_norm_rms_epsilon"));
  if (base <= 0)
    return Error(ErrorCode::kBadModel, arch + ".rope.freq_base must be positive", arch + ".rope.freq_base");
  if (eps <= 0)
    return Error(ErrorCode::kBadModel, "the norm's epsilon must be positive",
                 arch + ".attention.layer_norm_rms_epsilon");
  c.rope_base = static_cast<float>(base);
  c.eps = static_cast<float>(eps);
  TRY_ASSIGN(c.turbo, m.boolean_or("acestep.is_turbo", false));
  TRY_ASSIGN(const int64_t encoder_width, m.integer_or("acestep.encoder_hidden_size", 0));
  c.timbre_token = encoder_width > 0;
  const auto count = [&](const char* key, std::size_t& out) -> Result<void> {
    TRY_ASSIGN(const int64_t n, m.integer_or(key, static_cast<int64_t>(out), 1, kMostLayers));
    out = static_cast<std::size_t>(n);
    return {};
  };
  TRY(count("acestep.num_lyric_encoder_hidden_layers", c.n_lyric_layer));
  TRY(count("acestep.num_timbre_encoder_hidden_layers", c.n_timbre_layer));
  TRY(count("acestep.num_attention_pooler_hidden_layers", c.n_pooler_layer));
  TRY_ASSIGN(c.fsq_levels, read_levels(m, c.fsq_levels));
  TRY_ASSIGN(c.layer, LayerSizes::read(file, "decoder.layers.0.", "self_attn_norm.weight"));
  const struct {
    const char* key;
    int64_t found;
  } stated[] = {{".embedding_length", c.layer.n_embd},
                {".feed_forward_length", c.layer.n_ff},
                {".attention.head_count", c.layer.n_head},
                {".attention.head_count_kv", c.layer.n_kv_head},
                {".attention.key_length", c.layer.head_dim}};
  for (const auto& s : stated) {
    TRY_ASSIGN(const int64_t wanted, m.integer(arch + s.key, 1));
    if (wanted != s.found)
      return Error(ErrorCode::kBadModel,
                   fmt::format("{}{} is {}, but the tensors of decoder.layers.0 say {}", arch, s.key, wanted, s.found),
                   arch + s.key);
  }
  return c;
}

}  // namespace

Result<std::shared_ptr<const DitFile>> DitFile::open(const std::string& path) {
  std::shared_ptr<DitFile> dit(new DitFile);
  dit->path_ = path;
  TRY_ASSIGN(dit->file_, open_music_file(path, MusicFileKind::kDit));
  const GgufFile& file = *dit->file_;
  TRY_ASSIGN(dit->config_, read_config(file));
  TRY_ASSIGN(const TensorInfo* condition, require_tensor(file, "decoder.condition_embedder.weight"));
  dit->n_enc_ = condition->ne[0];

  TRY_ASSIGN(const TensorInfo* silence, require_tensor(file, "silence_latent"));
  if (silence->type != GGML_TYPE_F32 || silence->ne[0] != dit->config_.n_channels || silence->ne[2] != 1 ||
      silence->ne[3] != 1)
    return Error(ErrorCode::kBadModel,
                 fmt::format("tensor silence_latent must be F32 [{}, frames], but is {} [{}, {}]",
                             dit->config_.n_channels, ggml_type_name(silence->type), silence->ne[0], silence->ne[1]),
                 "silence_latent");
  TRY_ASSIGN(dit->silence_, read_tensor(file, *silence));
  for (const float value : dit->silence_)
    if (!std::isfinite(value))
      return Error(ErrorCode::kBadModel, "tensor silence_latent has values that are not finite", "silence_latent");

  if (const TensorInfo* null = file.find("null_condition_emb")) {
    if (null->ne[0] != dit->n_enc_ || null->ne[1] * null->ne[2] * null->ne[3] != 1)
      return Error(ErrorCode::kBadModel, fmt::format("tensor null_condition_emb must have {} values", dit->n_enc_),
                   "null_condition_emb");
    TRY_ASSIGN(dit->null_condition_, read_tensor(file, *null));
  }
  return std::shared_ptr<const DitFile>(std::move(dit));
}

}  // namespace hocket
