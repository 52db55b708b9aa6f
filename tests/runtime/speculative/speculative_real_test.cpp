// Drafts on the small real model. Its weights as F32, an F32 cache, exact attention, one thread: the shapes of the
// steps then move logits by some 1e-6 only, and no two of the most probable tokens of these texts are that close, so
// that 200 greedy tokens are equal. (With the file's own quantised weights activations are rounded to 8 bits before
// each product, and near ties may fall the other way.)
#include "lm/loaded_model.h"
#include "runtime/speculative/decode_both.h"
#include "runtime/speculative/draft_model.h"
#include "runtime/speculative/prompt_lookup.h"
#include "support/real_models.h"

namespace hocket::test {
namespace {

constexpr const char* kRecipe =
    "<|im_start|>user\nRepeat this recipe word for word, then say what it is for.\n\nTake two cups of flour, one cup "
    "of "
    "sugar, three eggs and a pinch of salt. Beat the eggs with the sugar until they are white. Sift the flour and the "
    "salt "
    "over them and fold them in. Bake in a moderate oven for forty minutes.<|im_end|>\n<|im_start|>assistant\n";
constexpr const char* kQuestion =
    "<|im_start|>user\nExplain in a few sentences why the sky is blue.<|im_end|>\n<|im_start|>assistant\n";

class SpeculativeReal : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = real_model_path("smollm2");
    if (path.empty()) GTEST_SKIP() << "no path of the real model smollm2 in the environment";
    auto file = GgufFile::open(path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    file_ = std::move(*file);
    auto tokenizer = Tokenizer::load(file_->metadata());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    tokenizer_ = std::move(*tokenizer);
    LoadedModel::DeclareOptions options;
    options.n_vocab = file_->find("token_embd.weight")->ne[1];
    options.device = *find_device("");
    auto model = LoadedModel::declare(file_->metadata(), std::make_shared<DequantisedWeights>(file_), options);
    ASSERT_TRUE(model.ok()) << model.error().message;
    ASSERT_TRUE((*model)->weights().load({}).ok());
    model_ = std::move(*model);
    task_.sampling = greedy();
    task_.sampling.ignore_eos = true;
    task_.generation.max_tokens = 200;
  }

  static std::unique_ptr<LmRunner> runner(const LanguageModel& model) {
    RunnerOptions options;
    options.n_ctx = 512;
    options.n_threads = 1;
    options.cache_k = options.cache_v = CacheType::kF32;
    auto made = LmRunner::create(model, options);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(*made);
  }
  void ask(const char* text) {
    auto ids = tokenizer_->encode(text, {false, true});
    ASSERT_TRUE(ids.ok());
    task_.prompt = std::move(*ids);
  }

  std::shared_ptr<const GgufFile> file_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<LanguageModel> model_;
  Task task_;
};

TEST_F(SpeculativeReal, GreedyAndSeededTextsAreEqual) {
  auto quantised = LanguageModel::load(file_, {});
  ASSERT_TRUE(quantised.ok()) << quantised.error().message;
  const auto target = runner(*model_), small = runner(**quantised);
  ask(kRecipe);
  const Outcome recipe = decode(*target, *tokenizer_, task_, nullptr);
  ASSERT_EQ(recipe.ids.size(), 200u);
  PromptLookup lookup;
  const Outcome by_lookup = decode(*target, *tokenizer_, task_, &lookup);
  expect_equal(by_lookup, recipe);
  EXPECT_GT(by_lookup.counts.n_accepted, 20u) << by_lookup.text;

  ask(kQuestion);
  DraftModel draft_model(*small, {0.05, tokenizer_->size(), tokenizer_->end_of_generation()});
  const Outcome answer = decode(*target, *tokenizer_, task_, nullptr);
  const Outcome by_model = decode(*target, *tokenizer_, task_, &draft_model);
  expect_equal(by_model, answer);
  EXPECT_GT(by_model.counts.n_accepted, 100u) << by_model.text;
  EXPECT_LT(by_model.counts.n_steps, 100u);

  task_.sampling = SamplingParams();
  task_.sampling.seed = 5;
  task_.generation.max_tokens = 40;
  const Outcome seeded = decode(*target, *tokenizer_, task_, nullptr);
  const Outcome with = decode(*target, *tokenizer_, task_, &draft_model);
  expect_equal(with, seeded);
  EXPECT_GT(with.counts.n_accepted, 10u) << with.text;
}

}  // namespace
}  // namespace hocket::test
