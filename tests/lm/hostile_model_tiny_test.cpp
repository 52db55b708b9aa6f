// Model files whose header is well formed and whose content is not: every hyper-parameter set to hostile values, every
// tensor missing, misshapen or of another type. Each must load and run, or give an Error that names the key or tensor;
// the process must survive all of them.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <map>
#include <tuple>

#include "lm/language_model.h"
#include "lm/loaded_model.h"
#include "lm/runner.h"
#include "support/tiny_models.h"
#include "weights/gguf_format.h"
#include "weights/gguf_writer.h"
#include "weights/weight_source.h"

namespace hocket::test {
namespace {

struct TinyFile {
  Metadata metadata;
  std::vector<TensorInfo> tensors;
};

// The tensors that the architecture asks for, with the tiny hyper-parameters. `wide`: rows of 256, so that every block
// type fits.
TinyFile tiny_file(const std::string& arch, bool wide = false) {
  TinyFile file{*tiny_metadata(arch), {}};
  if (wide) {
    file.metadata.set(arch + ".embedding_length", int64_t{256});
    file.metadata.set(arch + ".feed_forward_length", int64_t{256});
    file.metadata.set(arch + ".attention.head_count", int64_t{4});
    if (!file.metadata.has(arch + ".attention.kv_lora_rank")) {
      file.metadata.set(arch + ".attention.key_length", int64_t{64});
      file.metadata.set(arch + ".attention.value_length", int64_t{64});
    }
    for (const char* name : {".expert_feed_forward_length", ".expert_shared_feed_forward_length"})
      if (file.metadata.has(arch + name)) file.metadata.set(arch + name, int64_t{256});
  }
  auto source = std::make_shared<SyntheticWeights>(1);
  LoadedModel::DeclareOptions options;
  options.n_vocab = kTinyVocab;
  options.device = *find_device("");
  options.repack = false;
  options.nextn = LoadedModel::Nextn::kRequired;
  const auto model = LoadedModel::declare(file.metadata, source, options);
  EXPECT_TRUE(model.ok()) << model.error().message;
  file.tensors.assign(source->made().begin(), source->made().end());
  return file;
}

// The bytes of a tensor, made once a process: thousands of files have the same ones.
const std::vector<std::byte>& bytes_of(const TensorInfo& t) {
  static std::map<std::tuple<std::string, ggml_type, std::array<int64_t, 4>>, std::vector<std::byte>> made;
  auto& data = made[{t.name, t.type, t.ne}];
  if (!data.empty()) return data;
  data.resize(tensor_bytes(t.type, t.ne));
  if (t.type == GGML_TYPE_F32) {
    EXPECT_TRUE(SyntheticWeights(1).read(t, data).ok());
  }
  return data;
}

std::vector<std::byte> image_of(const TinyFile& file) {
  GgufWriter writer(file.metadata);
  for (const TensorInfo& t : file.tensors) {
    const Shape shape(t.ne.begin(), t.ne.begin() + t.n_dims);
    const auto added =
        writer.add_stream(t.name, t.type, shape, [&t](const ByteSink& sink) { return sink(bytes_of(t)); });
    EXPECT_TRUE(added.ok()) << t.name;
  }
  auto image = writer.image();
  EXPECT_TRUE(image.ok());
  return *std::move(image);
}

// Loads the file and runs steps; an Error on the way is returned.
Result<void> load_and_run(const TinyFile& file,
                          const std::vector<CacheType>& types = {CacheType::kF16, CacheType::kF32}) {
  const auto image = image_of(file);
  TRY_ASSIGN(auto gguf, GgufFile::parse(image));
  TRY_ASSIGN(const auto model, LanguageModel::load(std::shared_ptr<const GgufFile>(std::move(gguf)), {}));
  for (const CacheType type : types) {
    RunnerOptions options;
    options.n_ctx = 64;
    options.n_batch = 16;
    options.n_threads = 1;
    options.cache_k = options.cache_v = type;
    TRY_ASSIGN(const auto runner, LmRunner::create(*model, options));
    for (int step = 0; step < 3; ++step) {
      std::vector<BatchToken> batch;
      for (int i = 0; i < (step == 0 ? 16 : 1); ++i) batch.push_back({i, 0, i % 5 == 0});
      TRY(runner->step(batch));
    }
  }
  return {};
}

class HostileModel : public testing::TestWithParam<std::string> {};

TEST_P(HostileModel, TheUnchangedFileRuns) {
  const auto ran = load_and_run(tiny_file(GetParam()));
  EXPECT_TRUE(ran.ok()) << ran.error().message;
}

TEST_P(HostileModel, EveryHyperParameterWithHostileValues) {
  const TinyFile good = tiny_file(GetParam());
  MetadataArray empty, three;
  empty.items = std::vector<int64_t>{};
  three.items = std::vector<int64_t>{1, 0, 2};
  MetadataArray flags;
  flags.items = std::vector<bool>{true, false};
  const std::vector<MetadataValue> values{int64_t{0},
                                          int64_t{-1},
                                          int64_t{1},
                                          int64_t{3},
                                          int64_t{7},
                                          int64_t{1} << 31,
                                          std::numeric_limits<int64_t>::max(),
                                          std::numeric_limits<int64_t>::min(),
                                          0.0,
                                          -1.0,
                                          1e-300,
                                          1e300,
                                          true,
                                          std::string("x"),
                                          empty,
                                          three,
                                          flags};
  // Keys that the file does not have are read too.
  std::vector<std::string> keys{"rope.dimension_count",
                                "rope.freq_base",
                                "rope.scaling.type",
                                "rope.scaling.factor",
                                "rope.scaling.original_context_length",
                                "rope.scaling.attn_factor",
                                "rope.scaling.yarn_ext_factor",
                                "rope.scaling.yarn_beta_fast",
                                "rope.freq_base_swa",
                                "attention.sliding_window",
                                "attention.sliding_window_pattern",
                                "attention.scale",
                                "attention.key_length",
                                "attention.value_length",
                                "attn_logit_softcapping",
                                "final_logit_softcapping",
                                "nextn_predict_layers",
                                "expert_count",
                                "expert_used_count",
                                "expert_feed_forward_length",
                                "expert_shared_count",
                                "expert_shared_feed_forward_length",
                                "expert_group_count",
                                "expert_group_used_count",
                                "expert_gating_func",
                                "expert_weights_norm",
                                "expert_weights_scale",
                                "leading_dense_block_count",
                                "swiglu_clamp_exp",
                                "swiglu_clamp_shexp",
                                "embedding_scale",
                                "residual_scale",
                                "logit_scale",
                                "pooling_type"};
  for (std::string& key : keys) key = GetParam() + "." + key;
  for (const auto& [key, value] : good.metadata.entries()) keys.push_back(key);
  int n_refused = 0, n_run = 0;
  for (const std::string& key : keys) {
    for (std::size_t v = 0; v < values.size(); ++v) {
      TinyFile bad = good;
      bad.metadata.set(key, values[v]);
      SCOPED_TRACE(testing::Message() << key << " with value number " << v);
      const auto ran = load_and_run(bad, {v % 2 == 0 ? CacheType::kF16 : CacheType::kF32});
      if (ran.ok()) {
        ++n_run;
        continue;
      }
      ++n_refused;
      EXPECT_NE(ran.error().code, ErrorCode::kInternal) << ran.error().message;
      EXPECT_FALSE(ran.error().param.empty()) << ran.error().message;
    }
  }
  EXPECT_GT(n_refused, 100);
  EXPECT_GT(n_run, 20);
}

TEST_P(HostileModel, EveryRequiredKeyMissing) {
  const TinyFile good = tiny_file(GetParam());
  for (const char* name :
       {"context_length", "embedding_length", "block_count", "attention.head_count", "expert_used_count"}) {
    if (!good.metadata.has(GetParam() + "." + name)) continue;
    TinyFile bad{{}, good.tensors};
    for (const auto& [key, value] : good.metadata.entries())
      if (key != GetParam() + "." + name) bad.metadata.set(key, value);
    const auto ran = load_and_run(bad);
    ASSERT_FALSE(ran.ok()) << name;
    EXPECT_EQ(ran.error().param, GetParam() + "." + name);
  }
}

TEST_P(HostileModel, EveryTensorMissingOrMisshapen) {
  const TinyFile good = tiny_file(GetParam());
  for (std::size_t i = 0; i < good.tensors.size(); ++i) {
    const std::string name = good.tensors[i].name;
    TinyFile missing = good;
    missing.tensors.erase(missing.tensors.begin() + static_cast<std::ptrdiff_t>(i));
    const auto without = load_and_run(missing);
    ASSERT_FALSE(without.ok()) << name;
    EXPECT_EQ(without.error().param, name);

    for (const std::size_t dim : {0u, 1u, 2u}) {
      if (dim == 2 && good.tensors[i].n_dims < 3) continue;
      if (dim == 1 && name == "token_embd.weight") continue;  // this size is the vocabulary's
      TinyFile bad = good;
      bad.tensors[i].ne[dim] += 1;
      bad.tensors[i].n_dims = std::max(bad.tensors[i].n_dims, static_cast<int>(dim) + 1);
      const auto ran = load_and_run(bad);
      ASSERT_FALSE(ran.ok()) << name;
      EXPECT_EQ(ran.error().code, ErrorCode::kBadModel) << name;
    }
  }
}

// Whatever type a weight has, it is computed with or refused by name.
TEST_P(HostileModel, EveryTensorType) {
  const TinyFile good = tiny_file(GetParam(), /*wide=*/true);
  int n_run = 0;
  for (int id = 0; id < GGML_TYPE_COUNT; ++id) {
    const auto type = static_cast<ggml_type>(id);
    if (ggml_blck_size(type) <= 0 || ggml_type_size(type) == 0) continue;  // a number without a type
    for (const bool vectors : {false, true}) {
      TinyFile typed = good;
      for (TensorInfo& tensor : typed.tensors)
        if ((tensor.n_dims == 1) == vectors && tensor.ne[0] % ggml_blck_size(type) == 0) tensor.type = type;
      const auto ran = load_and_run(typed, {vectors ? CacheType::kF32 : CacheType::kF16});
      if (ran.ok()) {
        ++n_run;
      } else {
        EXPECT_FALSE(ran.error().param.empty()) << ggml_type_name(type) << ": " << ran.error().message;
      }
    }
  }
  EXPECT_GT(n_run, 30);
}

INSTANTIATE_TEST_SUITE_P(Architectures, HostileModel, testing::ValuesIn(supported_architectures()),
                         [](const auto& test) { return test_name(test.param); });

}  // namespace
}  // namespace hocket::test
