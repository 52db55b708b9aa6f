// Whole models of quantised weights with our own kernels: against ggml's, against each other, in other company, and in
// the memory they take.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "compute/kernels/kernel_table.h"
#include "lm/language_model.h"
#include "lm/loaded_model.h"
#include "lm/runner.h"
#include "support/every_position.h"
#include "support/numbers.h"
#include "support/tiny_models.h"
#include "weights/gguf_writer.h"

namespace hocket::test {
namespace {

// A file whose matrices have the type, or the values of that type in F32; the table of a tied head, too.
std::vector<std::byte> image(const std::string& arch, ggml_type type, bool in_f32 = false, uint64_t seed = 3) {
  Metadata metadata = *tiny_metadata(arch);
  metadata.set(arch + ".embedding_length", int64_t{256});
  metadata.set(arch + ".feed_forward_length", int64_t{256});
  metadata.set(arch + ".attention.key_length", int64_t{64});
  metadata.set(arch + ".attention.value_length", int64_t{64});
  metadata.set(arch + ".expert_feed_forward_length", int64_t{256});
  auto source = std::make_shared<SyntheticWeights>(seed);
  LoadedModel::DeclareOptions options;
  options.n_vocab = kTinyVocab;
  options.device = *find_device("");
  options.repack = false;
  const auto model = LoadedModel::declare(metadata, source, options);
  EXPECT_TRUE(model.ok()) << model.error().message;
  GgufWriter writer(metadata);
  for (const TensorInfo& t : source->made()) {
    std::vector<std::byte> data(t.n_bytes);
    EXPECT_TRUE(source->read(t, data).ok());
    ggml_type as = t.type;
    if (t.n_dims > 1 && t.ne[0] % ggml_blck_size(type) == 0 && t.name.find("ffn_gate_inp") == std::string::npos) {
      const int64_t n_rows = static_cast<int64_t>(t.n_bytes / sizeof(float)) / t.ne[0];
      std::vector<std::byte> blocks(ggml_row_size(type, t.ne[0]) * static_cast<std::size_t>(n_rows));
      ggml_quantize_chunk(type, reinterpret_cast<const float*>(data.data()), blocks.data(), 0, n_rows, t.ne[0],
                          nullptr);
      if (in_f32 && type != GGML_TYPE_F32) {
        ggml_get_type_traits(type)->to_float(blocks.data(), reinterpret_cast<float*>(data.data()), n_rows * t.ne[0]);
      } else {
        data = std::move(blocks);
        as = type;
      }
    }
    EXPECT_TRUE(writer.add_bytes(t.name, as, Shape(t.ne.begin(), t.ne.begin() + t.n_dims), std::move(data)).ok());
  }
  return *writer.image();
}

std::shared_ptr<const GgufFile> parse(const std::vector<std::byte>& bytes) {
  auto file = GgufFile::parse(bytes);
  EXPECT_TRUE(file.ok());
  return std::shared_ptr<const GgufFile>(std::move(*file));
}

// Weights that are neither packed nor converted stay in `file`, which has to live as long.
std::unique_ptr<LanguageModel> load(std::vector<std::byte>&& file, const std::string& kernels) = delete;
std::unique_ptr<LanguageModel> load(const std::vector<std::byte>& file, const std::string& kernels) {
  LoadOptions options;
  options.cpu_kernels = kernels;
  auto model = LanguageModel::load(parse(file), options);
  EXPECT_TRUE(model.ok()) << model.error().message;
  return std::move(*model);
}

RunnerOptions runner_options(int n_threads = 1) {
  RunnerOptions options;
  options.n_ctx = 64;
  options.n_batch = 32;
  options.n_seqs = 2;
  options.n_threads = n_threads;
  return options;
}

std::vector<float> logits(const LanguageModel& model) {
  const auto runner = LmRunner::create(model, runner_options());
  EXPECT_TRUE(runner.ok());
  return logits_of_every_position(**runner);
}

struct TypeCase {
  const char* arch;
  ggml_type type;
  double most = 2e-3;  // NMSE of the logits; a recurrence carries errors on
};

class CpuKernels : public testing::TestWithParam<TypeCase> {};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// The median of the rows' NMSE. Where two experts are nearly equal, rounding may make a row choose the other one.
double median_nmse(std::span<const float> got, std::span<const float> expected) {
  std::vector<double> rows;
  for (std::size_t at = 0; at + kTinyVocab <= expected.size(); at += kTinyVocab)
    rows.push_back(nmse(got.subspan(at, kTinyVocab), expected.subspan(at, kTinyVocab)));
  return median(std::move(rows));
}

// Both sides round the activations to 8 bits, each in its own way: an NMSE of about 1e-5 a product. A choice of another
// expert early on moves most rows of a model, on either side alike: the median of several models does not follow it.
TEST_P(CpuKernels, AreAsNearToTheValuesOfTheWeightsAsGgmls) {
  std::vector<double> ours, ggmls;
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    const auto file = image(GetParam().arch, GetParam().type, false, seed);
    const auto in_f32 = image(GetParam().arch, GetParam().type, /*in_f32=*/true, seed);
    const auto exact = logits(*load(in_f32, "ggml"));
    ours.push_back(median_nmse(logits(*load(file, "auto")), exact));
    ggmls.push_back(median_nmse(logits(*load(file, "ggml")), exact));
  }
  EXPECT_LE(median(ours), std::min(1.5 * median(ggmls), GetParam().most)) << "ggml's: " << median(ggmls);
}

TEST_P(CpuKernels, AreTheSameOnEveryInstructionSet) {
  const auto file = image(GetParam().arch, GetParam().type);
  const auto reference = logits(*load(file, "portable"));
  for (const KernelTable* kernels : all_kernels()) {
    if (!runs_here(*kernels)) {
      std::printf("this CPU has no %s\n", kernels->name);
      continue;
    }
    EXPECT_EQ(logits(*load(file, kernels->name)), reference) << kernels->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CpuKernels,
                         testing::Values(TypeCase{"qwen3", GGML_TYPE_Q4_0}, TypeCase{"qwen3", GGML_TYPE_Q4_1},
                                         TypeCase{"qwen3", GGML_TYPE_Q5_0}, TypeCase{"qwen3", GGML_TYPE_Q5_1},
                                         TypeCase{"qwen3", GGML_TYPE_Q8_0}, TypeCase{"qwen3", GGML_TYPE_Q4_K},
                                         TypeCase{"qwen3", GGML_TYPE_Q5_K}, TypeCase{"qwen3", GGML_TYPE_Q6_K},
                                         TypeCase{"qwen3", GGML_TYPE_Q2_K}, TypeCase{"qwen3", GGML_TYPE_Q3_K},
                                         TypeCase{"qwen3", GGML_TYPE_IQ4_NL}, TypeCase{"qwen3", GGML_TYPE_IQ4_XS},
                                         TypeCase{"qwen3", GGML_TYPE_MXFP4}, TypeCase{"gpt-oss", GGML_TYPE_MXFP4},
                                         TypeCase{"gemma3", GGML_TYPE_Q8_0}, TypeCase{"qwen3moe", GGML_TYPE_Q4_0},
                                         TypeCase{"qwen3moe", GGML_TYPE_Q4_K}, TypeCase{"gpt-oss", GGML_TYPE_Q8_0},
                                         TypeCase{"qwen3", GGML_TYPE_F16}, TypeCase{"qwen3", GGML_TYPE_BF16},
                                         TypeCase{"qwen35", GGML_TYPE_Q8_0, 1e-2}),
                         [](const auto& test) {
                           return test_name(test.param.arch) + "_" + ggml_type_name(test.param.type);
                         });

constexpr int32_t kTokens = 25;

// Logits of the first tokens of sequence 0, evaluated `n_each` at a time, beside as many of another sequence or alone.
std::vector<float> in_batches(const LanguageModel& model, int32_t n_each, bool beside, int n_threads) {
  RunnerOptions options = runner_options(n_threads);
  options.n_ctx = 128;
  options.n_batch = 128;
  const auto runner = LmRunner::create(model, options);
  EXPECT_TRUE(runner.ok());
  std::vector<float> rows;
  for (int32_t i = 0; i < kTokens; i += n_each) {
    std::vector<BatchToken> batch;
    for (int32_t j = i; j < std::min(kTokens, i + n_each); ++j) {
      if (beside) batch.push_back({(j * 11 + 5) % 96, 1, true});
      batch.push_back({j * 37 % 96, 0, true});
    }
    EXPECT_TRUE((*runner)->step(batch).ok());
    for (std::size_t row = beside ? 1 : 0; row < batch.size(); row += beside ? 2 : 1)
      rows.insert(rows.end(), (*runner)->output(row).begin(), (*runner)->output(row).end());
  }
  return rows;
}

TEST(CpuKernelsOfAModel, GiveTheSameBitsInEveryBatch) {
  if (!find_kernels("auto")) GTEST_SKIP() << "this CPU has none of our own kernels";
  for (const TypeCase& c :
       {TypeCase{"qwen3", GGML_TYPE_Q4_0}, TypeCase{"gemma3", GGML_TYPE_Q8_0}, TypeCase{"qwen3", GGML_TYPE_F16},
        TypeCase{"llama", GGML_TYPE_BF16}, TypeCase{"qwen3moe", GGML_TYPE_Q4_0}, TypeCase{"gpt-oss", GGML_TYPE_F32},
        TypeCase{"qwen35", GGML_TYPE_Q8_0}, TypeCase{"gpt-oss", GGML_TYPE_MXFP4}, TypeCase{"lfm2", GGML_TYPE_Q4_0},
        TypeCase{"qwen3next", GGML_TYPE_Q8_0}}) {
    SCOPED_TRACE(c.arch);
    const auto file = image(c.arch, c.type);
    const auto model = load(file, "auto");
    const auto alone = in_batches(*model, 1, false, 1);
    EXPECT_EQ(in_batches(*model, kTokens, false, 2), alone) << "all at once";
    EXPECT_EQ(in_batches(*model, 7, false, 1), alone) << "seven at a time";
    EXPECT_EQ(in_batches(*model, 13, true, 2), alone) << "beside another sequence";
    EXPECT_EQ(in_batches(*model, 1, true, 1), alone) << "each beside one of another sequence";
    EXPECT_TRUE((*LmRunner::create(*model, runner_options()))->rows_independent());
    RunnerOptions exact = runner_options();
    exact.flash_attention = FlashAttention::kOff;
    EXPECT_FALSE((*LmRunner::create(*model, exact))->rows_independent()) << "ggml's products of keys and queries";
    const auto ggml = load(file, "ggml");
    EXPECT_FALSE((*LmRunner::create(*ggml, runner_options()))->rows_independent());
  }
}

TEST(CpuKernelsOfAModel, AreNamedAndChosen) {
  const auto file = image("qwen3", GGML_TYPE_Q4_0);
  EXPECT_EQ(load(file, "portable")->summary().kernels, "portable: q4_0");
  EXPECT_EQ(load(file, "ggml")->summary().kernels, "ggml: q4_0");
  LoadOptions unknown;
  unknown.cpu_kernels = "mmx";
  const auto refused = LanguageModel::load(parse(file), unknown);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(refused.error().param, "cpu-kernels");
}

TEST(CpuKernelsOfAModel, HoldATiedTableOnce) {
  const auto bytes = image("gemma3", GGML_TYPE_Q8_0);
  const auto file = parse(bytes);
  LoadOptions options;
  options.cpu_kernels = "portable";
  const auto packed = plan_memory(*file, runner_options(), options);
  options.cpu_kernels = "ggml";
  options.repack = false;
  const auto as_in_file = plan_memory(*file, runner_options(), options);
  ASSERT_TRUE(packed.ok() && as_in_file.ok());
  // Rows are padded to groups of 16; Q8_0 takes as much room in either layout.
  EXPECT_NEAR(static_cast<double>(packed->weight_bytes), static_cast<double>(as_in_file->weight_bytes),
              0.02 * static_cast<double>(as_in_file->weight_bytes));
}

}  // namespace
}  // namespace hocket::test
