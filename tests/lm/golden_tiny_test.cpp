// Logits of the golden tiny models, all positions, against an independent double-precision evaluation (X.all.f32) and
// against llama.cpp's last row (X.last.f32).
//
// Bounds: F32 weights, F32 cache and exact attention leave only the order of F32 sums: 1e-11. gemma3 uses ggml's GELU
// table in half precision: 1e-6 against exact GELU, 1e-9 against a program with the same table; on another CPU than the
// one that recorded it, where ggml adds in another order, a sum may meet the table's next entry: 1e-7. With an F16
// cache and flash attention, keys and values are rounded to 11 bits: 1e-6.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "lm/language_model.h"
#include "lm/runner.h"
#include "support/numbers.h"

namespace hocket::test {
namespace {

#if defined(__x86_64__)
constexpr double kSameTable = 1e-9;
#else
constexpr double kSameTable = 1e-7;
#endif

const std::string kFolder = HOCKET_TEST_DATA "/lm/";

class Golden : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const nlohmann::json index = nlohmann::json::parse(std::ifstream(kFolder + "index.json"));
    for (const auto& entry : index)
      if (entry["model"] == std::string(GetParam()) + ".gguf") entry_ = entry;
    ASSERT_FALSE(entry_.is_null()) << GetParam() << " is not in the index";
    auto file = GgufFile::open(kFolder + GetParam() + ".gguf");
    ASSERT_TRUE(file.ok()) << file.error().message;
    auto model = LanguageModel::load(std::shared_ptr<const GgufFile>(std::move(*file)), {});
    ASSERT_TRUE(model.ok()) << model.error().message;
    model_ = std::move(*model);
    for (const int32_t id : entry_["tokens"]) tokens_.push_back(id);
    all_ = read_floats(kFolder + GetParam() + ".all.f32");
    last_ = read_floats(kFolder + GetParam() + ".last.f32");
    ASSERT_EQ(all_.size(), tokens_.size() * model_->n_vocab());
    ASSERT_EQ(last_.size(), model_->n_vocab());
  }

  // Logits of every position, in steps of n_batch tokens.
  std::vector<float> run(RunnerOptions options, std::size_t n_batch) {
    options.n_threads = 1;  // tiny graphs gain nothing from more
    options.n_ctx = 256;
    options.n_batch = 64;
    auto runner = LmRunner::create(*model_, options);
    EXPECT_TRUE(runner.ok());
    std::vector<float> rows;
    for (std::size_t at = 0; at < tokens_.size(); at += n_batch) {
      std::vector<BatchToken> batch;
      for (std::size_t i = at; i < std::min(at + n_batch, tokens_.size()); ++i) batch.push_back({tokens_[i], 0, true});
      const auto stepped = (*runner)->step(batch);
      EXPECT_TRUE(stepped.ok()) << stepped.error().message;
      for (std::size_t i = 0; i < batch.size(); ++i)
        rows.insert(rows.end(), (*runner)->output(i).begin(), (*runner)->output(i).end());
    }
    return rows;
  }

  bool has_gelu_table() const { return std::string(GetParam()).starts_with("gemma"); }

  nlohmann::json entry_;
  std::unique_ptr<LanguageModel> model_;
  std::vector<int32_t> tokens_;
  std::vector<float> all_, last_;
};

TEST_P(Golden, ExactAttentionMatchesEveryPosition) {
  RunnerOptions options;
  options.cache_k = options.cache_v = CacheType::kF32;
  for (const std::size_t n_batch : {64, 7, 1}) {
    const std::vector<float> rows = run(options, n_batch);
    ASSERT_EQ(rows.size(), all_.size());
    EXPECT_LE(nmse(rows, all_), has_gelu_table() ? 1e-6 : 1e-11) << "batches of " << n_batch;
    const std::span<const float> last = std::span<const float>(rows).last(last_.size());
    EXPECT_LE(nmse(last, last_), has_gelu_table() ? kSameTable : 1e-11) << "batches of " << n_batch;
  }
}

TEST_P(Golden, HalfPrecisionCacheStaysClose) {
  const std::vector<float> rows = run({}, 16);
  EXPECT_LE(nmse(rows, all_), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Models, Golden,
                         testing::Values("llama", "qwen2", "qwen3", "gemma3", "phi3", "qwen3moe", "bm2", "glm4moe",
                                         "gptoss", "bailingmoe3", "bailingmoe3_flat", "kimi", "qwen35", "qwen35moe",
                                         "qwen3next", "ds2", "dsa", "lfm2", "gemma4"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace hocket::test
