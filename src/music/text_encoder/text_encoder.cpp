#include "music/text_encoder/text_encoder.h"

#include <fmt/format.h>

#include "music/model_file.h"

namespace hocket {
namespace {

constexpr int64_t kMostLayers = 64;
constexpr int64_t kPublishedLayers = 28;
constexpr std::size_t kMostTokens = 8192;

}  // namespace

Result<std::unique_ptr<TextEncoder>> TextEncoder::load(std::shared_ptr<const GgufFile> file,
                                                       const MusicCompute& compute) {
  const std::string arch(music_architecture(MusicFileKind::kTextEncoder));
  const Metadata& metadata = file->metadata();
  TRY_ASSIGN(const int64_t n_layer, metadata.integer_or(arch + ".block_count", kPublishedLayers, 1, kMostLayers));
  EncoderNumbers numbers;
  TRY_ASSIGN(const double base, metadata.number_or(arch + ".rope.freq_base", numbers.rope_base));
  TRY_ASSIGN(const double eps, metadata.number_or(arch + ".attention.layer_norm_rms_epsilon", numbers.eps));
  if (base <= 0 || eps < 0)
    return Error(ErrorCode::kBadModel, "rope.freq_base must be positive and the epsilon not negative", arch);
  numbers = {static_cast<float>(base), static_cast<float>(eps)};

  std::unique_ptr<TextEncoder> encoder(new TextEncoder);
  encoder->compute_ = compute;
  encoder->file_ = file;
  TRY_ASSIGN(encoder->sizes_, EncoderStack::read_sizes(*file, ""));
  TRY_ASSIGN(const TensorInfo* table, require_tensor(*file, "embed_tokens.weight"));
  encoder->n_vocab_ = table->ne[1];
  encoder->weights_ =
      std::make_unique<WeightSet>(std::make_shared<FileWeights>(file), compute.device, true, compute.kernels);
  encoder->table_ = encoder->weights_->table("embed_tokens.weight", {encoder->sizes_.n_embd, encoder->n_vocab_});
  encoder->stack_ =
      EncoderStack::make(*encoder->weights_, "", static_cast<std::size_t>(n_layer), encoder->sizes_, numbers);
  TRY(compute.load(*encoder->weights_, "text encoder"));
  return encoder;
}

Result<void> TextEncoder::check(std::span<const int32_t> ids) const {
  if (ids.empty() || ids.size() > kMostTokens)
    return Error(ErrorCode::kInvalid,
                 fmt::format("the text has {} tokens; 1 to {} can be read", ids.size(), kMostTokens));
  for (const int32_t id : ids)
    if (id < 0 || id >= n_vocab_)
      return Error(ErrorCode::kInvalid, fmt::format("token {} is outside the text encoder's {} rows", id, n_vocab_));
  return {};
}

Result<std::vector<float>> TextEncoder::encode(std::span<const int32_t> ids, const CancelToken& cancel,
                                               Taps* taps) const {
  TRY(check(ids));
  const auto n = static_cast<int64_t>(ids.size());
  const std::size_t max_nodes = stack_.max_nodes(n, 1) + 64 * (taps ? 16 : 1);
  NetworkGraph g(compute_, max_nodes, taps);
  Tensor x = ggml_get_rows(g.context(), table_, g.integers({n}, {ids.begin(), ids.end()}));
  x = stack_.run(g, x, n, 1, [](std::size_t) { return Sight{Sight::Kind::kBefore, 0, {}}; }, "text");
  g.graph().output(x, "text_hidden");
  return run_once(compute_, g, x, max_nodes, cancel);
}

Result<std::vector<float>> TextEncoder::embed(std::span<const int32_t> ids, const CancelToken& cancel) const {
  TRY(check(ids));
  constexpr std::size_t kNodes = 16;
  NetworkGraph g(compute_, kNodes);
  Tensor x =
      ggml_get_rows(g.context(), table_, g.integers({static_cast<int64_t>(ids.size())}, {ids.begin(), ids.end()}));
  g.graph().output(x, "embedding");
  return run_once(compute_, g, x, kNodes, cancel);
}

}  // namespace hocket
