#include "music/cond/condition_encoder.h"

#include <fmt/format.h>

namespace hocket {
namespace {

constexpr int64_t kWindow = 128;

// Even layers see the window, odd ones everything.
Sight alternating(std::size_t il) {
  return il % 2 == 0 ? Sight{Sight::Kind::kWindow, kWindow, {}} : Sight{};
}

std::vector<float> copy(std::span<const float> values) {
  return {values.begin(), values.end()};
}

}  // namespace

Result<std::unique_ptr<ConditionEncoder>> ConditionEncoder::load(std::shared_ptr<const DitFile> dit,
                                                                 const MusicCompute& compute) {
  const GgufFile& file = *dit->gguf();
  const DitConfig& config = dit->config();
  std::unique_ptr<ConditionEncoder> encoder(new ConditionEncoder);
  encoder->compute_ = compute;
  encoder->dit_ = dit;
  TRY_ASSIGN(encoder->sizes_, EncoderStack::read_sizes(file, "encoder.lyric_encoder."));
  TRY_ASSIGN(const LayerSizes timbre, EncoderStack::read_sizes(file, "encoder.timbre_encoder."));
  const int64_t n_embd = encoder->sizes_.n_embd;
  if (timbre.n_embd != n_embd || n_embd != dit->n_enc())
    return Error(ErrorCode::kBadModel,
                 fmt::format("lyric encoder, timbre encoder and DiT have widths {}, {} and {} of the conditioning",
                             n_embd, timbre.n_embd, dit->n_enc()),
                 "encoder.timbre_encoder.layers.0.input_layernorm.weight");
  TRY_ASSIGN(const TensorInfo* text, require_tensor(file, "encoder.text_projector.weight"));
  encoder->n_text_ = text->ne[0];

  encoder->weights_ =
      std::make_unique<WeightSet>(std::make_shared<FileWeights>(dit->gguf()), compute.device, true, compute.kernels);
  WeightSet& w = *encoder->weights_;
  const EncoderNumbers numbers;
  encoder->lyric_in_ =
      Projection::make(w, "encoder.lyric_encoder.embed_tokens", encoder->n_text_, n_embd, /*with_bias=*/true);
  encoder->lyric_ = EncoderStack::make(w, "encoder.lyric_encoder.", config.n_lyric_layer, encoder->sizes_, numbers);
  encoder->timbre_in_ =
      Projection::make(w, "encoder.timbre_encoder.embed_tokens", config.n_channels, n_embd, /*with_bias=*/true);
  encoder->timbre_ = EncoderStack::make(w, "encoder.timbre_encoder.", config.n_timbre_layer, timbre, numbers);
  if (config.timbre_token) encoder->timbre_token_ = w.vector("encoder.timbre_encoder.special_token", {n_embd});
  encoder->text_ = Projection::make(w, "encoder.text_projector", encoder->n_text_, n_embd, /*with_bias=*/false);
  TRY(compute.load(w, "condition encoder"));
  return encoder;
}

Result<std::vector<float>> ConditionEncoder::encode_lyrics(std::span<const float> lyrics, const CancelToken& cancel,
                                                           Taps* taps) const {
  const auto n = static_cast<int64_t>(lyrics.size()) / n_text_;
  const std::size_t max_nodes = lyric_.max_nodes(n, 1) + 256;
  NetworkGraph g(compute_, max_nodes, taps);
  Tensor h = lyric_.run(g, lyric_in_.run(g, g.floats({n_text_, n}, copy(lyrics))), n, 1, alternating, "lyric");
  g.graph().output(h, "lyric_out");
  return run_once(compute_, g, h, max_nodes, cancel);
}

Result<std::vector<float>> ConditionEncoder::encode_timbre(std::span<const float> timbre, const CancelToken& cancel,
                                                           Taps* taps) const {
  const int64_t n_channels = dit_->config().n_channels, n_embd = sizes_.n_embd;
  int64_t n = static_cast<int64_t>(timbre.size()) / n_channels;
  const std::size_t max_nodes = timbre_.max_nodes(n + 1, 1) + 256;
  NetworkGraph g(compute_, max_nodes, taps);
  Tensor h = timbre_in_.run(g, g.floats({n_channels, n}, copy(timbre)));
  if (timbre_token_) {
    h = ggml_concat(g.context(), ggml_reshape_2d(g.context(), timbre_token_, n_embd, 1), h, 1);
    ++n;
  }
  h = timbre_.run(g, h, n, 1, alternating, "timbre");
  Tensor first = ggml_cont(g.context(), ggml_view_1d(g.context(), h, n_embd, 0));
  g.graph().output(first, "timbre_out");
  return run_once(compute_, g, first, max_nodes, cancel);
}

Result<std::vector<float>> ConditionEncoder::project_text(std::span<const float> text,
                                                          const CancelToken& cancel) const {
  constexpr std::size_t kNodes = 16;
  NetworkGraph g(compute_, kNodes);
  Tensor h = text_.run(g, g.floats({n_text_, static_cast<int64_t>(text.size()) / n_text_}, copy(text)));
  g.graph().output(h, "text_proj");
  return run_once(compute_, g, h, kNodes, cancel);
}

Result<std::vector<float>> ConditionEncoder::encode(const Input& input, const CancelToken& cancel, Taps* taps) const {
  const auto whole_rows = [](std::span<const float> values, int64_t width) {
    return !values.empty() && values.size() % static_cast<std::size_t>(width) == 0;
  };
  if (!whole_rows(input.text, n_text_) || !whole_rows(input.lyrics, n_text_) ||
      !whole_rows(input.timbre, dit_->config().n_channels))
    return Error(ErrorCode::kInvalid, "text, lyrics and timbre must be whole rows, at least one of each");
  TRY_ASSIGN(std::vector<float> packed, encode_lyrics(input.lyrics, cancel, taps));
  TRY_ASSIGN(const std::vector<float> timbre, encode_timbre(input.timbre, cancel, taps));
  TRY_ASSIGN(const std::vector<float> text, project_text(input.text, cancel));
  packed.insert(packed.end(), timbre.begin(), timbre.end());
  packed.insert(packed.end(), text.begin(), text.end());
  return packed;
}

}  // namespace hocket
