// Model files that lack something or lie: an error that names the tensor or key, never an abort.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "music/cond/condition_encoder.h"
#include "music/dit/dit.h"
#include "music/fsq/fsq_detokenizer.h"
#include "music/fsq/fsq_tokenizer.h"
#include "music/goldens.h"
#include "music/model_file.h"
#include "music/planner/planner_model.h"
#include "music/text_encoder/text_encoder.h"
#include "music/vae/vae_decoder.h"
#include "music/vae/vae_encoder.h"
#include "weights/gguf_writer.h"

namespace hocket {
namespace {

using test::value_or_fail;

// A copy of a model with one tensor left out, or of another shape, or one key changed.
struct Change {
  std::string drop;
  std::string reshape;
  std::vector<int64_t> shape;
  std::string key;
  std::optional<MetadataValue> value;
};

class Copy {
 public:
  Copy(const std::string& model, const Change& change) {
    const auto file = value_or_fail(GgufFile::open(test::music_data("models/" + model)));
    Metadata metadata = file->metadata();
    if (change.value) metadata.set(change.key, *change.value);
    GgufWriter writer(metadata);
    for (const TensorInfo& tensor : file->tensors()) {
      if (tensor.name == change.drop) continue;
      std::vector<int64_t> shape(tensor.ne.begin(), tensor.ne.begin() + tensor.n_dims);
      std::vector<std::byte> bytes(tensor.n_bytes);
      EXPECT_TRUE(file->read(tensor, 0, bytes).ok());
      if (tensor.name == change.reshape) {
        shape = change.shape;
        int64_t n = 1;
        for (const int64_t size : shape) n *= size;
        bytes.assign(static_cast<std::size_t>(n) * ggml_type_size(tensor.type), std::byte{0});
      }
      EXPECT_TRUE(writer.add_bytes(tensor.name, tensor.type, shape, std::move(bytes)).ok()) << tensor.name;
    }
    path_ = std::filesystem::temp_directory_path() / ("hocket-bad-" + std::to_string(::getpid()) + ".gguf");
    EXPECT_TRUE(writer.write(path_).ok());
  }
  ~Copy() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The error of opening the file and loading all networks that are in it; "" when all went well.
std::string load_dit(const std::string& path) {
  const auto dit = DitFile::open(path);
  if (!dit.ok()) return dit.error().param;
  const auto compute = test::test_compute();
  if (const auto net = ConditionEncoder::load(*dit, compute); !net.ok()) return net.error().param;
  if (const auto net = FsqTokenizer::load(*dit, compute); !net.ok()) return net.error().param;
  if (const auto net = FsqDetokenizer::load(*dit, compute); !net.ok()) return net.error().param;
  if (const auto net = Dit::load(*dit, compute); !net.ok()) return net.error().param;
  return "";
}

std::string load_vae(const std::string& path) {
  const auto file = value_or_fail(open_music_file(path, MusicFileKind::kVae));
  const auto compute = test::test_compute();
  if (const auto net = VaeDecoder::load(file, compute); !net.ok()) return net.error().param;
  if (const auto net = VaeEncoder::load(file, compute); !net.ok()) return net.error().param;
  return "";
}

TEST(BadModels, AMissingTensorOfTheDitIsNamed) {
  EXPECT_EQ(load_dit(test::music_data("models/dit-turbo.gguf")), "");
  for (const char* name :
       {"silence_latent", "decoder.proj_in.1.weight", "decoder.time_embed_r.linear_2.bias",
        "decoder.layers.0.self_attn.q_proj.weight", "decoder.layers.2.scale_shift_table", "decoder.norm_out.weight",
        "encoder.lyric_encoder.layers.1.mlp.up_proj.weight", "encoder.text_projector.weight",
        "tokenizer.attention_pooler.layers.1.post_attention_layernorm.weight", "tokenizer.quantizer.project_in.bias",
        "detokenizer.special_tokens", "decoder.condition_embedder.weight"})
    EXPECT_EQ(
        load_dit(Copy("dit-turbo.gguf", {.drop = name, .reshape = "", .shape = {}, .key = "", .value = {}}).path()),
        name);
}

TEST(BadModels, AWrongShapeOfTheDitIsNamed) {
  const struct {
    const char* name;
    std::vector<int64_t> shape;
  } rows[] = {{"silence_latent", {63, 10}},
              {"silence_latent", {64, 10, 2}},
              {"null_condition_emb", {47}},
              {"decoder.proj_out.1.weight", {2, 64, 63}},
              {"decoder.layers.1.self_attn.k_norm.weight", {32}},
              {"decoder.layers.0.self_attn.q_norm.weight", {63}},
              {"decoder.layers.0.self_attn.q_norm.weight", {0x10000}},
              {"encoder.lyric_encoder.embed_tokens.bias", {49}},
              {"detokenizer.special_tokens", {48, 4}},
              {"tokenizer.quantizer.project_out.weight", {7, 48}}};
  for (const auto& row : rows)
    EXPECT_EQ(
        load_dit(Copy("dit-turbo.gguf", {.drop = "", .reshape = row.name, .shape = row.shape, .key = "", .value = {}})
                     .path()),
        row.name);
}

TEST(BadModels, AKeyThatDisagreesIsNamed) {
  const struct {
    const char* key;
    MetadataValue value;
  } rows[] = {{"acestep-dit.attention.head_count", int64_t{8}},
              {"acestep-dit.block_count", int64_t{0}},
              {"acestep.in_channels", int64_t{128}},
              {"acestep.patch_size", int64_t{0}},
              {"acestep-dit.rope.freq_base", -1.0},
              {"acestep.is_turbo", std::string("yes")},
              {"acestep.sliding_window", std::string("wide")}};
  for (const auto& row : rows)
    EXPECT_EQ(
        load_dit(Copy("dit-turbo.gguf", {.drop = "", .reshape = "", .shape = {}, .key = row.key, .value = row.value})
                     .path()),
        row.key);
}

TEST(BadModels, TheVaeNamesItsTensors) {
  EXPECT_EQ(load_vae(test::music_data("models/vae.gguf")), "");
  for (const char* name : {"decoder.conv1.weight_v", "decoder.conv1.weight_g", "decoder.block.2.res_unit3.conv2.bias",
                           "decoder.block.4.snake1.beta", "encoder.conv2.weight_v", "encoder.block.0.conv1.bias"})
    EXPECT_EQ(load_vae(Copy("vae.gguf", {.drop = name, .reshape = "", .shape = {}, .key = "", .value = {}}).path()),
              name);
  EXPECT_EQ(load_vae(Copy("vae.gguf", {.drop = "",
                                       .reshape = "decoder.block.0.conv_t1.weight_v",
                                       .shape = {21, 40, 48},
                                       .key = "",
                                       .value = {}})
                         .path()),
            "decoder.block.0.conv_t1.weight_v");
  EXPECT_EQ(
      load_vae(Copy("vae.gguf", {.drop = "", .reshape = "encoder.snake1.alpha", .shape = {48}, .key = "", .value = {}})
                   .path()),
      "encoder.snake1.alpha");
}

TEST(BadModels, TextEncoderAndPlannerNameTheirs) {
  const auto text = [](const Change& change) {
    const Copy copy("text-encoder.gguf", change);
    const auto net = TextEncoder::load(value_or_fail(open_music_file(copy.path(), MusicFileKind::kTextEncoder)),
                                       test::test_compute());
    return net.ok() ? std::string() : net.error().param;
  };
  EXPECT_EQ(text({.drop = "layers.2.mlp.down_proj.weight", .reshape = "", .shape = {}, .key = "", .value = {}}),
            "layers.2.mlp.down_proj.weight");
  EXPECT_EQ(text({.drop = "embed_tokens.weight", .reshape = "", .shape = {}, .key = "", .value = {}}),
            "embed_tokens.weight");
  const auto lm = [](const Change& change) {
    const Copy copy("lm.gguf", change);
    const auto net = PlannerModel::load(copy.path(), {});
    return net.ok() ? std::string() : net.error().param;
  };
  EXPECT_EQ(lm({.drop = "model.layers.1.self_attn.q_norm.weight", .reshape = "", .shape = {}, .key = "", .value = {}}),
            "model.layers.1.self_attn.q_norm.weight");
  EXPECT_EQ(lm({.drop = "", .reshape = "model.embed_tokens.weight", .shape = {8, 1000}, .key = "", .value = {}}),
            "model.embed_tokens.weight");
  EXPECT_EQ(lm({.drop = "", .reshape = "", .shape = {}, .key = "acestep.config_json", .value = std::string("{")}),
            "acestep.config_json");
}

}  // namespace
}  // namespace hocket
