// Writes a model file of a real model's shape with random weights, for benches: the tensors and types of a published
// file without its download.
//
//   make_model qwen3-1.7b q4_0 OUT.gguf
//
// It has no tokenizer ("none"), so it serves benches only.
#include <fmt/format.h>
#include <ggml.h>

#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "compute/device.h"
#include "lm/loaded_model.h"
#include "weights/gguf_writer.h"
#include "weights/weight_source.h"

namespace hocket {
namespace {

struct Experts {
  int64_t n_expert, n_used, n_ff;
};

struct ModelShape {
  const char* arch;
  int64_t n_layer, n_embd, n_ff, n_head, n_kv_head, head_dim, n_vocab;  // heads are tied here, whatever the model has
  std::optional<Experts> experts = {};
  // More keys, without the architecture's name; they win over those that follow from the fields above.
  std::vector<std::pair<std::string, MetadataValue>> more = {};
};

// For each layer whether it attends: every `period`th one.
MetadataArray every(int64_t n_layer, int64_t period, int64_t n_kv_head) {
  std::vector<int64_t> heads;
  for (int64_t il = 0; il < n_layer; ++il) heads.push_back((il + 1) % period == 0 ? n_kv_head : 0);
  MetadataArray array;
  array.items = std::move(heads);
  return array;
}

MetadataArray sections(std::vector<int64_t> items) {
  MetadataArray array;
  array.items = std::move(items);
  return array;
}

// Ling 3.0 tiny: three KDA layers to one of latent attention, 128 experts; about 7.9 billion weights with 24 layers.
// Without latent attention it shows what KDA alone costs over a long context.
ModelShape ling_3_tiny(int64_t n_layer, bool latent_layers = true) {
  return {"bailingmoe3",
          n_layer,
          1536,
          4608,
          16,
          1,
          576,
          157184,
          Experts{128, 8, 512},
          {{"attention.head_count_kv", latent_layers ? every(n_layer, 4, 1) : every(n_layer, n_layer + 1, 0)},
           {"attention.kv_lora_rank", int64_t{512}},
           {"attention.value_length", int64_t{512}},
           {"attention.key_length_mla", int64_t{192}},
           {"attention.value_length_mla", int64_t{128}},
           {"rope.dimension_count", int64_t{64}},
           {"ssm.conv_kernel", int64_t{4}},
           {"kda.head_dim", int64_t{128}},
           {"kda.safe_gate", true},
           {"kda.gate_lower_bound", -5.0},
           {"expert_shared_count", int64_t{1}},
           {"expert_shared_feed_forward_length", int64_t{512}},
           {"leading_dense_block_count", int64_t{1}},
           {"expert_weights_scale", 2.5},
           {"expert_weights_norm", true},
           {"expert_gating_func", int64_t{2}}}};
}

const std::map<std::string, ModelShape> kShapes{
    {"qwen3-0.6b", {"qwen3", 28, 1024, 3072, 16, 8, 128, 151936}},
    {"qwen3-1.7b", {"qwen3", 28, 2048, 6144, 16, 8, 128, 151936}},
    {"qwen3-4b", {"qwen3", 36, 2560, 9728, 32, 8, 128, 151936}},
    {"llama-3.2-1b", {"llama", 16, 2048, 8192, 32, 8, 64, 128256}},
    // The first layers of models of 48 and 24: all layers are alike.
    {"qwen3-30b-a3b-4l", {"qwen3moe", 4, 2048, 6144, 32, 4, 128, 151936, Experts{128, 8, 768}}},
    {"ling-3-tiny", ling_3_tiny(24)},
    {"ling-3-tiny-8l", ling_3_tiny(8)},
    {"ling-3-tiny-kda-4l", ling_3_tiny(4, false)},
    {"qwen3.5-2b",
     {"qwen35",
      24,
      2048,
      6144,
      8,
      2,
      256,
      248320,
      {},
      {{"rope.dimension_count", int64_t{64}},
       {"ssm.conv_kernel", int64_t{4}},
       {"ssm.state_size", int64_t{128}},
       {"ssm.group_count", int64_t{16}},
       {"ssm.time_step_rank", int64_t{16}},
       {"ssm.inner_size", int64_t{2048}},
       {"full_attention_interval", int64_t{4}},
       {"rope.dimension_sections", sections({11, 11, 10, 0})}}}},
    {"gpt-oss-20b-4l", {"gpt-oss", 4, 2880, 2880, 64, 8, 64, 201088, Experts{32, 4, 2880}}},
};

// The peer insists on the selection bias of families that route by a sigmoid; for us it is optional.
struct BenchWeights : SyntheticWeights {
  explicit BenchWeights(bool selection_bias) : SyntheticWeights(1), with_bias(selection_bias) {}
  const TensorInfo* find(std::string_view name, const Shape& wanted, bool optional) override {
    const bool made = with_bias && name.find("exp_probs_b") != std::string_view::npos;
    return SyntheticWeights::find(name, wanted, optional && !made);
  }
  bool with_bias;
};

// What a quantiser gives each weight: a type for most, and one for the few that are more sensitive.
struct Recipe {
  ggml_type most, sensitive, embedding;
  std::optional<ggml_type> experts = {};  // of stacks, when another than those
};
const std::map<std::string, Recipe> kRecipes{
    {"f32", {GGML_TYPE_F32, GGML_TYPE_F32, GGML_TYPE_F32}},
    {"f16", {GGML_TYPE_F16, GGML_TYPE_F16, GGML_TYPE_F16}},
    {"bf16", {GGML_TYPE_BF16, GGML_TYPE_BF16, GGML_TYPE_BF16}},
    {"q8_0", {GGML_TYPE_Q8_0, GGML_TYPE_Q8_0, GGML_TYPE_Q8_0}},
    {"q4_0", {GGML_TYPE_Q4_0, GGML_TYPE_Q4_0, GGML_TYPE_Q6_K}},
    {"q4_1", {GGML_TYPE_Q4_1, GGML_TYPE_Q4_1, GGML_TYPE_Q6_K}},
    {"q4_k_m", {GGML_TYPE_Q4_K, GGML_TYPE_Q6_K, GGML_TYPE_Q6_K}},
    {"mxfp4", {GGML_TYPE_Q8_0, GGML_TYPE_Q8_0, GGML_TYPE_Q8_0, GGML_TYPE_MXFP4}},
};

ggml_type type_of(const TensorInfo& tensor, const Recipe& recipe) {
  // Offsets of experts have two dimensions, too.
  if (tensor.n_dims == 1 || tensor.name.ends_with(".bias") || tensor.name.find("ffn_gate_inp") != std::string::npos)
    return GGML_TYPE_F32;
  if (tensor.name == "token_embd.weight") return recipe.embedding;
  // Convolutions and decays stay as they are; short rows have no large blocks.
  if (tensor.ne[0] % 32 != 0 || tensor.name.find("ssm_conv") != std::string::npos) return GGML_TYPE_F32;
  if (tensor.ne[0] % ggml_blck_size(recipe.most) != 0) return GGML_TYPE_Q8_0;
  if (tensor.n_dims == 3 && recipe.experts) return *recipe.experts;
  const bool sensitive =
      tensor.name.find("attn_v") != std::string::npos || tensor.name.find("ffn_down") != std::string::npos;
  return sensitive ? recipe.sensitive : recipe.most;
}

Metadata metadata_of(const ModelShape& shape, const std::string& name) {
  Metadata m;
  const std::string arch = shape.arch;
  m.set("general.architecture", arch);
  m.set("general.name", "random weights, shape of " + name);
  m.set(arch + ".context_length", int64_t{40960});
  m.set(arch + ".embedding_length", shape.n_embd);
  m.set(arch + ".block_count", shape.n_layer);
  m.set(arch + ".feed_forward_length", shape.n_ff);
  m.set(arch + ".attention.head_count", shape.n_head);
  m.set(arch + ".attention.head_count_kv", shape.n_kv_head);
  m.set(arch + ".attention.key_length", shape.head_dim);
  m.set(arch + ".attention.value_length", shape.head_dim);
  m.set(arch + ".rope.dimension_count", shape.head_dim);
  m.set(arch + ".attention.layer_norm_rms_epsilon", 1e-6);
  m.set(arch + ".rope.freq_base", 1e6);
  m.set(arch + ".vocab_size", shape.n_vocab);
  if (shape.experts) {
    m.set(arch + ".expert_count", shape.experts->n_expert);
    m.set(arch + ".expert_used_count", shape.experts->n_used);
    m.set(arch + ".expert_feed_forward_length", shape.experts->n_ff);
  }
  if (arch == "gpt-oss") m.set(arch + ".attention.sliding_window", int64_t{128});
  for (const auto& [key, value] : shape.more) m.set(arch + "." + key, value);
  m.set("tokenizer.ggml.model", std::string("none"));
  return m;
}

// The tensor's random values in its type of the file.
Result<std::vector<std::byte>> values(const SyntheticWeights& source, const TensorInfo& tensor, ggml_type type) {
  std::vector<float> floats(tensor.n_bytes / sizeof(float));
  TRY(source.read(tensor, std::as_writable_bytes(std::span(floats))));
  const int64_t n_rows = static_cast<int64_t>(floats.size()) / tensor.ne[0];
  std::vector<std::byte> out(ggml_row_size(type, tensor.ne[0]) * static_cast<std::size_t>(n_rows));
  const int64_t half = n_rows / 2;
  std::thread other([&] { ggml_quantize_chunk(type, floats.data(), out.data(), 0, half, tensor.ne[0], nullptr); });
  ggml_quantize_chunk(type, floats.data(), out.data(), half * tensor.ne[0], n_rows - half, tensor.ne[0], nullptr);
  other.join();
  return out;
}

Result<void> make(const std::string& shape_name, const std::string& recipe_name, const std::string& path) {
  const auto shape = kShapes.find(shape_name);
  const auto recipe = kRecipes.find(recipe_name);
  if (shape == kShapes.end()) return Error(ErrorCode::kInvalid, "unknown shape " + shape_name);
  if (recipe == kRecipes.end()) return Error(ErrorCode::kInvalid, "unknown type " + recipe_name);
  const Metadata metadata = metadata_of(shape->second, shape_name);
  auto source = std::make_shared<BenchWeights>(std::string_view(shape->second.arch) == "bailingmoe3");
  LoadedModel::DeclareOptions options;
  TRY_ASSIGN(options.device, find_device(""));
  options.n_vocab = shape->second.n_vocab;
  options.repack = false;
  options.nextn = LoadedModel::Nextn::kRequired;
  // Declaring the model makes the source list every tensor that the architecture asks for.
  TRY_ASSIGN(const auto model, LoadedModel::declare(metadata, source, options));
  GgufWriter writer(metadata);
  for (const TensorInfo& tensor : source->made()) {
    const ggml_type type = type_of(tensor, recipe->second);
    TRY(writer.add(tensor.name, type, Shape(tensor.ne.begin(), tensor.ne.begin() + tensor.n_dims),
                   [&source, &tensor, type] { return values(*source, tensor, type); }));
  }
  return writer.write(path);
}

}  // namespace
}  // namespace hocket

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: make_model SHAPE TYPE OUT.gguf\n");
    return 2;
  }
  const auto made = hocket::make(argv[1], argv[2], argv[3]);
  if (!made.ok()) std::fprintf(stderr, "make_model: %s\n", made.error().message.c_str());
  return made.ok() ? 0 : 1;
}
