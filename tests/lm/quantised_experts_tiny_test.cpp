// Experts in the types of published files against the same values in F32.
//
// A product with a quantised weight rounds the activations to 8 bits, an NMSE of about 1e-5 each; the layers after it
// may then choose another expert where two are nearly equal. Over many tokens the logits stay within 1e-2, while a
// wrong layout of experts, blocks or nibbles gives values around 1.
#include <gtest/gtest.h>

#include "lm/language_model.h"
#include "lm/loaded_model.h"
#include "lm/runner.h"
#include "support/every_position.h"
#include "support/numbers.h"
#include "support/tiny_models.h"
#include "weights/gguf_writer.h"

namespace hocket::test {
namespace {

constexpr double kActivationsOf8Bits = 1e-2;

struct TypeCase {
  const char* arch;
  ggml_type type;
};

class QuantisedExperts : public testing::TestWithParam<TypeCase> {
 protected:
  // A file whose stacks of experts have the type, or the values of that type in F32.
  static std::vector<std::byte> image(const TypeCase& c, bool in_f32) {
    Metadata metadata = *tiny_metadata(c.arch);
    metadata.set(std::string(c.arch) + ".embedding_length", int64_t{256});
    metadata.set(std::string(c.arch) + ".expert_feed_forward_length", int64_t{256});
    auto source = std::make_shared<SyntheticWeights>(3);
    LoadedModel::DeclareOptions options;
    options.n_vocab = kTinyVocab;
    options.device = *find_device("");
    options.repack = false;
    const auto model = LoadedModel::declare(metadata, source, options);
    EXPECT_TRUE(model.ok()) << model.error().message;
    GgufWriter writer(metadata);
    for (const TensorInfo& t : source->made()) {
      const Shape shape(t.ne.begin(), t.ne.begin() + t.n_dims);
      std::vector<std::byte> data(t.n_bytes);
      EXPECT_TRUE(source->read(t, data).ok());
      ggml_type type = t.type;
      if (t.n_dims == 3) {
        const int64_t n = static_cast<int64_t>(t.n_bytes / sizeof(float)), n_rows = n / t.ne[0];
        std::vector<std::byte> blocks(ggml_row_size(c.type, t.ne[0]) * static_cast<std::size_t>(n_rows));
        ggml_quantize_chunk(c.type, reinterpret_cast<const float*>(data.data()), blocks.data(), 0, n_rows, t.ne[0],
                            nullptr);
        if (in_f32) {
          ggml_get_type_traits(c.type)->to_float(blocks.data(), reinterpret_cast<float*>(data.data()), n);
        } else {
          data = std::move(blocks);
          type = c.type;
        }
      }
      EXPECT_TRUE(writer.add_bytes(t.name, type, shape, std::move(data)).ok());
    }
    return *writer.image();
  }

  static std::vector<float> logits(const std::vector<std::byte>& file) {
    auto gguf = GgufFile::parse(file);
    EXPECT_TRUE(gguf.ok());
    const auto model = LanguageModel::load(std::shared_ptr<const GgufFile>(std::move(*gguf)), {});
    EXPECT_TRUE(model.ok()) << model.error().message;
    RunnerOptions options;
    options.n_ctx = 64;
    options.n_batch = 32;
    options.n_threads = 2;
    options.cache_k = options.cache_v = CacheType::kF32;
    const auto runner = LmRunner::create(**model, options);
    EXPECT_TRUE(runner.ok());
    return logits_of_every_position(**runner);
  }
};

TEST_P(QuantisedExperts, GiveTheLogitsOfTheirValues) {
  const auto expected = logits(image(GetParam(), /*in_f32=*/true));
  const auto got = logits(image(GetParam(), /*in_f32=*/false));
  EXPECT_LE(nmse(got, expected), kActivationsOf8Bits);
  EXPECT_GT(nmse(got, expected), 0.0) << "the weights were not quantised";
}

INSTANTIATE_TEST_SUITE_P(Types, QuantisedExperts,
                         testing::Values(TypeCase{"gpt-oss", GGML_TYPE_MXFP4}, TypeCase{"qwen3moe", GGML_TYPE_Q4_0},
                                         TypeCase{"qwen3moe", GGML_TYPE_Q8_0}, TypeCase{"qwen3moe", GGML_TYPE_Q4_K},
                                         TypeCase{"qwen3moe", GGML_TYPE_Q6_K}, TypeCase{"glm4moe", GGML_TYPE_IQ4_NL}),
                         [](const auto& test) {
                           return test_name(test.param.arch) + "_" + ggml_type_name(test.param.type);
                         });

}  // namespace
}  // namespace hocket::test
