// Writes the four files of ACE-Step 1.5 in their published shapes with random weights, for benches: what `hocket synth
// --models FOLDER` reads, without the download.
//
//   make_music_models [--lm 0.6b|1.7b|4b] [--dit 2b|xl] FOLDER
//
// Weights are BF16; `hocket quantize` makes the other types of them. Tokenizers know single bytes only, so a text has
// more tokens than with the published ones. The sound is noise: gates and scales are small, so that numbers stay sane.
//
// Source: shapes of ace-step.md §2.2 to 2.5.
#include <fmt/format.h>
#include <ggml.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "weights/gguf_writer.h"

namespace hocket {
namespace {

using Shape = std::vector<int64_t>;

// Uniform numbers around `base` up to `spread` away.
struct Values {
  float base, spread;
};
constexpr Values kNear1{1.0f, 0.05f}, kOffsets{0.0f, 0.02f}, kModulation{0.0f, 0.1f}, kSnake{0.0f, 0.5f};

Values like_weights(int64_t n_in) {
  return {0.0f, std::sqrt(3.0f / static_cast<float>(n_in))};
}

// xorshift64: the bench writes thousands of millions of them.
class Random {
 public:
  explicit Random(std::string_view name) {
    for (const char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  }
  float next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<float>(static_cast<int32_t>(state_ >> 32)) * 0x1.0p-31f;
  }

 private:
  uint64_t state_ = 0xCBF29CE484222325ull;
};

class Model {
 public:
  Model(std::string arch, const std::string& name) : arch_(std::move(arch)) {
    set("general.architecture", arch_);
    set("general.name", "random weights, shape of " + name);
  }

  void set(const std::string& key, MetadataValue value) { metadata_.set(key, std::move(value)); }
  void set_own(const std::string& key, MetadataValue value) { metadata_.set(arch_ + "." + key, std::move(value)); }

  void add(const std::string& name, const Shape& shape, Values values, ggml_type type = GGML_TYPE_BF16) {
    tensors_.push_back({name, shape, values, type});
  }
  // [n_in, n_out], as ggml orders them.
  void matrix(const std::string& name, int64_t n_in, int64_t n_out, bool with_bias = false) {
    add(name + ".weight", {n_in, n_out}, like_weights(n_in));
    if (with_bias) add(name + ".bias", {n_out}, kOffsets);
  }
  void norm(const std::string& name, int64_t n) { add(name + ".weight", {n}, kNear1); }

  Result<void> write(const std::filesystem::path& path) {
    GgufWriter writer(metadata_);
    for (const Tensor& tensor : tensors_)
      TRY(writer.add_stream(tensor.name, tensor.type, tensor.shape,
                            [&tensor](const ByteSink& sink) { return stream(tensor, sink); }));
    TRY(writer.write(path.string()));
    fmt::print("{}  {:.2f} GiB\n", path.string(), static_cast<double>(std::filesystem::file_size(path)) / (1u << 30));
    return {};
  }

 private:
  struct Tensor {
    std::string name;
    Shape shape;
    Values values;
    ggml_type type;
  };

  static Result<void> stream(const Tensor& tensor, const ByteSink& sink) {
    constexpr int64_t kPiece = 1 << 20;
    int64_t n_left = 1;
    for (const int64_t n : tensor.shape) n_left *= n;
    Random random(tensor.name);
    std::vector<float> floats;
    std::vector<ggml_bf16_t> halves;
    for (; n_left > 0; n_left -= static_cast<int64_t>(floats.size())) {
      floats.resize(static_cast<std::size_t>(std::min(n_left, kPiece)));
      for (float& value : floats) value = tensor.values.base + tensor.values.spread * random.next();
      if (tensor.type == GGML_TYPE_F32) {
        TRY(sink(std::as_bytes(std::span(floats))));
        continue;
      }
      halves.resize(floats.size());
      ggml_fp32_to_bf16_row(floats.data(), halves.data(), static_cast<int64_t>(floats.size()));
      TRY(sink(std::as_bytes(std::span(halves))));
    }
    return {};
  }

  std::string arch_;
  Metadata metadata_;
  std::vector<Tensor> tensors_;
};

struct Sizes {
  int64_t n_layer, n_embd, n_ff, n_head, n_kv_head = 8, head_dim = 128;
};

void set_sizes(Model& model, const Sizes& s) {
  model.set_own("block_count", s.n_layer);
  model.set_own("embedding_length", s.n_embd);
  model.set_own("feed_forward_length", s.n_ff);
  model.set_own("attention.head_count", s.n_head);
  model.set_own("attention.head_count_kv", s.n_kv_head);
  model.set_own("attention.key_length", s.head_dim);
  model.set_own("attention.layer_norm_rms_epsilon", 1e-6);
  model.set_own("rope.freq_base", 1e6);
}

// Bytes in the alphabet of GPT-2, without merges.
void set_tokenizer(Model& model) {
  MetadataArray tokens, merges;
  std::vector<std::string> pieces;
  const auto utf8 = [](uint32_t c) {
    return c < 0x80 ? std::string(1, static_cast<char>(c))
                    : std::string{static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
  };
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    pieces.push_back(utf8(printable ? byte : next++));
  }
  tokens.items = std::move(pieces);
  merges.items = std::vector<std::string>();
  model.set("tokenizer.ggml.model", std::string("gpt2"));
  model.set("tokenizer.ggml.tokens", std::move(tokens));
  model.set("tokenizer.ggml.merges", std::move(merges));
}

void add_attention(Model& model, const std::string& prefix, const Sizes& s) {
  const int64_t n_q = s.n_head * s.head_dim, n_kv = s.n_kv_head * s.head_dim;
  model.matrix(prefix + "q_proj", s.n_embd, n_q);
  model.matrix(prefix + "k_proj", s.n_embd, n_kv);
  model.matrix(prefix + "v_proj", s.n_embd, n_kv);
  model.matrix(prefix + "o_proj", n_q, s.n_embd);
  model.norm(prefix + "q_norm", s.head_dim);
  model.norm(prefix + "k_norm", s.head_dim);
}

void add_mlp(Model& model, const std::string& prefix, const Sizes& s) {
  model.matrix(prefix + "gate_proj", s.n_embd, s.n_ff);
  model.matrix(prefix + "up_proj", s.n_embd, s.n_ff);
  model.matrix(prefix + "down_proj", s.n_ff, s.n_embd);
}

void add_layers(Model& model, const std::string& prefix, const Sizes& s, int64_t n_layer) {
  for (int64_t il = 0; il < n_layer; ++il) {
    const std::string p = fmt::format("{}layers.{}.", prefix, il);
    model.norm(p + "input_layernorm", s.n_embd);
    model.norm(p + "post_attention_layernorm", s.n_embd);
    add_attention(model, p + "self_attn.", s);
    add_mlp(model, p + "mlp.", s);
  }
  model.norm(prefix + "norm", s.n_embd);
}

Model language_model(const std::string& name, const Sizes& s) {
  constexpr int64_t kVocab = 217'204;
  Model model("acestep-lm", "acestep-5Hz-lm-" + name);
  set_sizes(model, s);
  set_tokenizer(model);
  model.set("acestep.config_json",
            fmt::format(R"({{"vocab_size":{},"hidden_size":{},"intermediate_size":{},"num_attention_heads":{},)"
                        R"("num_key_value_heads":{},"head_dim":{},"num_hidden_layers":{},"rope_theta":1000000,)"
                        R"("rms_norm_eps":1e-06,"tie_word_embeddings":true}})",
                        kVocab, s.n_embd, s.n_ff, s.n_head, s.n_kv_head, s.head_dim, s.n_layer));
  model.add("model.embed_tokens.weight", {s.n_embd, kVocab}, like_weights(s.n_embd));
  add_layers(model, "model.", s, s.n_layer);
  return model;
}

Model text_encoder() {
  const Sizes s{28, 1024, 3072, 16};
  Model model("acestep-text-enc", "Qwen3-Embedding-0.6B");
  set_sizes(model, s);
  set_tokenizer(model);
  model.add("embed_tokens.weight", {s.n_embd, 151'669}, like_weights(s.n_embd));
  add_layers(model, "", s, s.n_layer);
  return model;
}

Model dit(const std::string& name, const Sizes& s, bool timbre_token) {
  constexpr int64_t kChannels = 64, kPatch = 2, kText = 1024, kCodeDims = 6;
  const Sizes enc{8, 2048, 6144, 16};
  Model model("acestep-dit", "acestep-v15-turbo " + name);
  set_sizes(model, s);
  model.set("acestep.in_channels", 3 * kChannels);
  model.set("acestep.audio_acoustic_hidden_dim", kChannels);
  model.set("acestep.patch_size", kPatch);
  model.set("acestep.sliding_window", int64_t{128});
  model.set("acestep.is_turbo", true);
  if (timbre_token) model.set("acestep.encoder_hidden_size", enc.n_embd);

  for (const std::string p : {"decoder.time_embed", "decoder.time_embed_r"}) {
    model.matrix(p + ".linear_1", 256, s.n_embd, true);
    model.matrix(p + ".linear_2", s.n_embd, s.n_embd, true);
    model.add(p + ".time_proj.weight", {s.n_embd, 6 * s.n_embd}, {0.0f, 0.1f * like_weights(s.n_embd).spread});
    model.add(p + ".time_proj.bias", {6 * s.n_embd}, kOffsets);
  }
  model.add("decoder.proj_in.1.weight", {kPatch, 3 * kChannels, s.n_embd}, like_weights(3 * kChannels * kPatch));
  model.add("decoder.proj_in.1.bias", {s.n_embd}, kOffsets);
  model.matrix("decoder.condition_embedder", enc.n_embd, s.n_embd, true);
  model.norm("decoder.norm_out", s.n_embd);
  model.add("decoder.scale_shift_table", {s.n_embd, 2, 1}, kModulation);
  model.add("decoder.proj_out.1.weight", {kPatch, kChannels, s.n_embd}, like_weights(s.n_embd));
  model.add("decoder.proj_out.1.bias", {kChannels}, kOffsets);
  for (int64_t il = 0; il < s.n_layer; ++il) {
    const std::string p = fmt::format("decoder.layers.{}.", il);
    for (const char* norm : {"self_attn_norm", "cross_attn_norm", "mlp_norm"}) model.norm(p + norm, s.n_embd);
    add_attention(model, p + "self_attn.", s);
    add_attention(model, p + "cross_attn.", s);
    add_mlp(model, p + "mlp.", s);
    model.add(p + "scale_shift_table", {s.n_embd, 6, 1}, kModulation);
  }
  model.add("null_condition_emb", {enc.n_embd, 1, 1}, kModulation);

  model.matrix("encoder.lyric_encoder.embed_tokens", kText, enc.n_embd, true);
  add_layers(model, "encoder.lyric_encoder.", enc, 8);
  model.matrix("encoder.timbre_encoder.embed_tokens", kChannels, enc.n_embd, true);
  model.add("encoder.timbre_encoder.special_token", {enc.n_embd, 1, 1}, kModulation);
  add_layers(model, "encoder.timbre_encoder.", enc, 4);
  model.matrix("encoder.text_projector", kText, enc.n_embd);

  model.matrix("tokenizer.audio_acoustic_proj", kChannels, enc.n_embd, true);
  model.matrix("tokenizer.attention_pooler.embed_tokens", enc.n_embd, enc.n_embd, true);
  model.add("tokenizer.attention_pooler.special_token", {enc.n_embd, 1, 1}, kModulation);
  add_layers(model, "tokenizer.attention_pooler.", enc, 2);
  model.matrix("tokenizer.quantizer.project_in", enc.n_embd, kCodeDims, true);
  model.matrix("tokenizer.quantizer.project_out", kCodeDims, enc.n_embd, true);
  model.matrix("detokenizer.embed_tokens", enc.n_embd, enc.n_embd, true);
  model.add("detokenizer.special_tokens", {enc.n_embd, 5, 1}, kModulation);
  add_layers(model, "detokenizer.", enc, 2);
  model.matrix("detokenizer.proj_out", enc.n_embd, kChannels, true);

  model.add("silence_latent", {kChannels, 15'000}, kModulation, GGML_TYPE_F32);
  return model;
}

void add_convolution(Model& model, const std::string& name, const Shape& shape, int64_t n_bias) {
  model.add(name + ".weight_g", {1, 1, shape[2]}, {0.85f, 0.1f});
  model.add(name + ".weight_v", shape, like_weights(shape[0] * shape[1]));
  if (n_bias > 0) model.add(name + ".bias", {n_bias}, kOffsets);
}

void add_snake(Model& model, const std::string& name, int64_t n) {
  model.add(name + ".alpha", {1, n, 1}, kSnake);
  model.add(name + ".beta", {1, n, 1}, kSnake);
}

void add_units(Model& model, const std::string& prefix, int64_t n) {
  for (int r = 1; r <= 3; ++r) {
    const std::string p = fmt::format("{}res_unit{}.", prefix, r);
    add_snake(model, p + "snake1", n);
    add_convolution(model, p + "conv1", {7, n, n}, n);
    add_snake(model, p + "snake2", n);
    add_convolution(model, p + "conv2", {1, n, n}, n);
  }
}

Model vae() {
  const std::vector<int64_t> widths{128, 128, 256, 512, 1024, 2048}, strides{2, 4, 4, 6, 10};
  constexpr int64_t kLatent = 64, kAudio = 2;
  Model model("acestep-vae", "the VAE of ACE-Step 1.5");
  add_convolution(model, "encoder.conv1", {7, kAudio, widths.front()}, widths.front());
  add_convolution(model, "decoder.conv1", {7, kLatent, widths.back()}, widths.back());
  for (std::size_t i = 0; i < strides.size(); ++i) {
    const std::string e = fmt::format("encoder.block.{}.", i), d = fmt::format("decoder.block.{}.", i);
    const int64_t stride = strides[i], narrow = widths[i], wide = widths[i + 1];
    add_units(model, e, narrow);
    add_snake(model, e + "snake1", narrow);
    add_convolution(model, e + "conv1", {2 * stride, narrow, wide}, wide);
    // The decoder goes the other way.
    const std::size_t j = strides.size() - 1 - i;
    add_snake(model, d + "snake1", widths[j + 1]);
    add_convolution(model, d + "conv_t1", {2 * strides[j], widths[j], widths[j + 1]}, widths[j]);
    add_units(model, d, widths[j]);
  }
  add_snake(model, "encoder.snake1", widths.back());
  add_convolution(model, "encoder.conv2", {3, widths.back(), 2 * kLatent}, 2 * kLatent);
  add_snake(model, "decoder.snake1", widths.front());
  add_convolution(model, "decoder.conv2", {7, widths.front(), kAudio}, 0);
  return model;
}

Result<void> make(const std::filesystem::path& folder, const std::string& lm, const std::string& dit_name) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error(ErrorCode::kIo, fmt::format("{}: {}", folder.string(), error.message()));
  const Sizes lm_sizes = lm == "0.6b"   ? Sizes{28, 1024, 3072, 16}
                         : lm == "1.7b" ? Sizes{28, 2048, 6144, 16}
                                        : Sizes{36, 2560, 9728, 32};
  const bool xl = dit_name == "xl";
  TRY(vae().write(folder / "vae-bf16.gguf"));
  TRY(text_encoder().write(folder / "text-encoder-bf16.gguf"));
  TRY(dit(dit_name, xl ? Sizes{32, 2560, 9728, 32} : Sizes{24, 2048, 6144, 16}, xl)
          .write(folder / fmt::format("dit-turbo-{}-bf16.gguf", dit_name)));
  return language_model(lm, lm_sizes).write(folder / fmt::format("lm-{}-bf16.gguf", lm));
}

}  // namespace
}  // namespace hocket

int main(int argc, char** argv) {
  CLI::App app("ACE-Step files of published shapes with random weights");
  std::string folder, lm = "0.6b", dit = "2b";
  app.add_option("folder", folder, "where the four files go")->required();
  app.add_option("--lm", lm, "language model")->check(CLI::IsMember({"0.6b", "1.7b", "4b"}))->capture_default_str();
  app.add_option("--dit", dit, "diffusion transformer")->check(CLI::IsMember({"2b", "xl"}))->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto made = hocket::make(folder, lm, dit);
  if (!made.ok()) std::fprintf(stderr, "make_music_models: %s\n", made.error().message.c_str());
  return made.ok() ? 0 : 1;
}
