// Drafts on synthetic models of every registered architecture, F32 weights and caches, our own kernels: a row has the
// same bits in every step, so that greedy and seeded texts are equal by construction. Of latent attention some products
// are ggml's; there rounding differs by the order of F32 sums.
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "compute/kernels/kernel_table.h"
#include "lm/language_model.h"
#include "lm/loaded_model.h"
#include "runtime/speculative/decode_both.h"
#include "runtime/speculative/draft_model.h"
#include "runtime/speculative/nextn_drafts.h"
#include "runtime/speculative/prompt_lookup.h"
#include "support/byte_tokenizer.h"
#include "support/exact_runner.h"
#include "support/numbers.h"
#include "support/tiny_models.h"

namespace hocket::test {
namespace {

Tokens some_tokens(std::size_t n, uint32_t seed) {
  Tokens tokens;
  for (std::size_t i = 0; i < n; ++i) {
    seed = seed * 1664525u + 1013904223u;
    tokens.push_back(static_cast<TokenId>((seed >> 8) % 256));
  }
  return tokens;
}

std::unique_ptr<LmRunner> runner_of(const LanguageModel& model, const RunnerOptions& options) {
  auto made = LmRunner::create(model, options);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(*made);
}

// n_rollback: 1 makes recurrent models evaluate accepted tokens again, more lets them take rejected ones back.
std::unique_ptr<LmRunner> make_runner(const LanguageModel& model, std::size_t n_rollback = 1) {
  RunnerOptions options = exact_options(n_rollback);
  options.flash_attention = FlashAttention::kOn;
  return runner_of(model, options);
}

// LanguageModel::synthetic() with our own kernels.
std::unique_ptr<LanguageModel> make_model(const Metadata& metadata, uint64_t seed, int64_t n_vocab) {
  LoadedModel::DeclareOptions options;
  options.device = *find_device("");
  options.kernels = find_kernels("auto");
  options.n_vocab = n_vocab;
  options.nextn = LoadedModel::Nextn::kRequired;
  auto model = LoadedModel::declare(metadata, std::make_shared<SyntheticWeights>(seed), options);
  EXPECT_TRUE(model.ok()) << model.error().message;
  EXPECT_TRUE((*model)->weights().load({}).ok());
  return std::move(*model);
}

std::unique_ptr<LanguageModel> make_model(const std::string& arch, uint64_t seed, int64_t n_vocab) {
  const auto metadata = tiny_metadata(arch);
  EXPECT_TRUE(metadata.has_value()) << "tests/support/tiny_models.h has no entry for " << arch;
  return make_model(*metadata, seed, n_vocab);
}

// Believes in its source until that is refuted, also where a rejection is dear.
struct Eager : DraftSource {
  explicit Eager(DraftSource& of) : source(of) {}
  DraftTraits traits() const override {
    DraftTraits traits = source.traits();
    traits.acceptance = 0.999;
    return traits;
  }
  Result<void> begin(std::size_t n_kept) override { return source.begin(n_kept); }
  Result<Draft> propose(const DraftRequest& request) override { return source.propose(request); }
  Result<void> accept(const TargetStep& step) override { return source.accept(step); }
  DraftSource& source;
};

class SpeculativeTiny : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    model_ = make_model(GetParam(), 7, static_cast<int64_t>(tokenizer_->size()));
    task_.prompt = some_tokens(20, 1);
    task_.sampling = greedy();
    task_.sampling.ignore_eos = true;
    task_.generation.max_tokens = 200;
  }
  Outcome run(DraftSource* source, std::size_t n_rollback = 9) {
    const auto runner = make_runner(*model_, n_rollback);
    if (!source) return decode(*runner, *tokenizer_, task_, nullptr);
    Eager eager(*source);
    return decode(*runner, *tokenizer_, task_, &eager);
  }

  std::unique_ptr<Tokenizer> tokenizer_ = fake::byte_tokenizer();
  std::unique_ptr<LanguageModel> model_;
  Task task_;
};

TEST_P(SpeculativeTiny, GreedyTextIsEqualWithLookup) {
  // What was said once is in the prompt of the second run, so that there is something to find.
  task_.generation.max_tokens = 100;
  const Outcome first = run(nullptr);
  task_.prompt.insert(task_.prompt.end(), first.ids.begin(), first.ids.end());
  task_.prompt.resize(40);
  task_.generation.max_tokens = 200;
  const Outcome without = run(nullptr);
  ASSERT_EQ(without.ids.size(), 200u);
  PromptLookup lookup({.shortest = 1});  // wrong drafts, too
  const Outcome with = run(&lookup);
  expect_equal(with, without);
  EXPECT_GT(with.counts.n_drafted, 20u);
}

TEST_P(SpeculativeTiny, GreedyTextIsEqualWithADraftModel) {
  const Outcome without = run(nullptr);
  // The model drafts for itself: everything is accepted but end tokens, which the sampler leaves out here.
  const auto twin = make_runner(*model_);
  DraftModel itself(*twin, {0.01, tokenizer_->size(), {}});
  const Outcome with = run(&itself);
  expect_equal(with, without);
  EXPECT_GE(with.counts.n_accepted, 100u);
  // Another one knows nothing of this one.
  const auto other_model = make_model(GetParam(), 8, static_cast<int64_t>(tokenizer_->size()));
  const auto other = make_runner(*other_model);
  DraftModel stranger(*other, {0.01, tokenizer_->size(), {}});
  const Outcome astray = run(&stranger);
  expect_equal(astray, without);
  EXPECT_GT(astray.counts.n_drafted, 0u);
}

TEST_P(SpeculativeTiny, RejectedDraftsLeaveNoTrace) {
  const Outcome without = run(nullptr);
  // The first token is often right, the next ones are not.
  ScriptedSource source(
      [&](std::span<const TokenId> history, std::size_t) {
        const std::size_t at = history.size() - task_.prompt.size();
        const TokenId wrong = (history.back() + 91) % 256;
        return at < without.ids.size() && at % 3 != 0 ? Tokens{without.ids[at], wrong, wrong} : Tokens{wrong, wrong};
      },
      3);
  // With 1 a recurrent model evaluates what was accepted again, with 4 it goes back to the state.
  for (const std::size_t n_rollback : {1u, 4u}) {
    const Outcome with = run(&source, n_rollback);
    expect_equal(with, without);
    EXPECT_GT(with.counts.n_accepted, 0u) << n_rollback;
    EXPECT_GT(with.counts.n_drafted, with.counts.n_accepted) << n_rollback;
  }
}

TEST_P(SpeculativeTiny, SampledTextIsEqualWithTheSameSeed) {
  task_.generation.max_tokens = 60;
  task_.sampling = SamplingParams();
  task_.sampling.top_k = 5;
  task_.sampling.repeat_penalty = 1.1f;
  task_.sampling.ignore_eos = true;
  const auto twin = make_runner(*model_);
  // ggml's table of GELU makes a thousandth of a last bit, enough for another token.
  if (GetParam().starts_with("gemma") && find_kernels("auto")) {
    EXPECT_TRUE(twin->rows_independent());
  }
  DraftModel itself(*twin, {0.01, tokenizer_->size(), {}});
  std::size_t n_accepted = 0, n_rejected = 0;
  for (task_.sampling.seed = 1; task_.sampling.seed <= 5; ++task_.sampling.seed) {
    const Outcome without = run(nullptr);
    const Outcome with = run(&itself);
    expect_equal(with, without);
    n_accepted += with.counts.n_accepted;
    n_rejected += with.counts.n_drafted - with.counts.n_accepted;
  }
  EXPECT_GT(n_accepted, 5u);
  EXPECT_GT(n_rejected, 5u);
}

INSTANTIATE_TEST_SUITE_P(Architectures, SpeculativeTiny, testing::ValuesIn(supported_architectures()),
                         [](const auto& arch) { return test_name(arch.param); });

// NextN blocks. With random weights their guesses are mostly wrong, which is what has to be taken back.
class SpeculativeNextn : public testing::TestWithParam<std::string> {};

TEST_P(SpeculativeNextn, GreedyTextIsEqual) {
  const auto tokenizer = fake::byte_tokenizer();
  const auto metadata = tiny_metadata_with_nextn(GetParam());
  ASSERT_TRUE(metadata.has_value());
  const auto model = make_model(*metadata, 7, static_cast<int64_t>(tokenizer->size()));
  Task task;
  task.prompt = some_tokens(80, 5);  // more than a batch
  task.sampling = greedy();
  task.sampling.ignore_eos = true;
  task.generation.max_tokens = 100;
  const Outcome without = decode(*make_runner(*model), *tokenizer, task, nullptr);
  for (const std::size_t n_rollback : {1u, 4u}) {
    auto block = std::move(*LmRunner::create_nextn(*model, exact_options(1)));
    NextnDrafts nextn(*block, {0.01, model->summary().n_embd, tokenizer->size(), {}});
    Eager drafts(nextn);
    const auto runner = make_runner(*model, n_rollback);
    const Outcome with = decode(*runner, *tokenizer, task, &drafts);
    expect_equal(with, without);
    EXPECT_GT(with.counts.n_drafted, with.counts.n_accepted);
    EXPECT_EQ(block->memory().length(0), with.n_remembered) << "the block does not stand where the model stands";
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, SpeculativeNextn,
                         testing::Values("bailingmoe3", "deepseek2", "glm-dsa", "glm4moe", "qwen35", "qwen35moe"),
                         [](const auto& test) { return test_name(test.param); });

// A block that was made to guess right sometimes: the golden model's own steps, through the whole decoder.
TEST(SpeculativeNextnGolden, AcceptsWhatTheReferenceAccepted) {
  const std::string folder = HOCKET_TEST_DATA "/lm/mtp/";
  const nlohmann::json index = nlohmann::json::parse(std::ifstream(folder + "index.json"));
  for (const auto& entry : index["models"]) {
    SCOPED_TRACE(entry["model"].get<std::string>());
    auto file = GgufFile::open(folder + entry["model"].get<std::string>());
    ASSERT_TRUE(file.ok());
    const auto model = LanguageModel::load(std::shared_ptr<const GgufFile>(std::move(*file)), {});
    ASSERT_TRUE(model.ok()) << model.error().message;
    const auto runner = make_runner(**model, 4);
    auto block = std::move(*LmRunner::create_nextn(**model, exact_options(1)));
    NextnDrafts nextn(*block, {0.0, (*model)->summary().n_embd, (*model)->n_vocab(), {}});
    Eager drafts(nextn);
    // The reference's first step verifies the last token of the prompt.
    const std::vector<TokenId> prompt = entry["prompt_ids"];
    const std::span<const TokenId> before = std::span(prompt).first(prompt.size() - 1);
    ASSERT_TRUE(drafts.begin(0).ok());
    ASSERT_TRUE(prefill_for_drafts(*runner, 0, before, &drafts, {}).ok());
    Tokens history = prompt, generated;
    for (const auto& step : entry["steps"]) {
      const std::size_t n_before = history.size();
      SpeculativeDecoder decoder(*runner, 0, drafts, {.n_max = 3}, history);
      const auto stepped = decoder.step(4,
                                        [&](std::span<const float> row) -> Result<SpeculativeDecoder::Drawn> {
                                          history.push_back(static_cast<TokenId>(argmax(row)));
                                          return SpeculativeDecoder::Drawn{history.back(), false};
                                        },
                                        {}, {});
      ASSERT_TRUE(stepped.ok()) << stepped.error().message;
      ASSERT_EQ(decoder.counts().n_drafted, 3u);
      EXPECT_EQ(decoder.counts().n_accepted, step["accepted"].get<std::size_t>());
      EXPECT_EQ(Tokens(history.begin() + static_cast<std::ptrdiff_t>(n_before), history.end()),
                step["main"].get<Tokens>());
    }
  }
}

TEST(SpeculativeThreads, ADraftModelTakesTurnsOnTheModelsThreads) {
  const auto tokenizer = fake::byte_tokenizer();
  const auto model = make_model("llama", 7, static_cast<int64_t>(tokenizer->size()));
  RunnerOptions two = exact_options(1);
  two.n_threads = 2;
  const auto target = runner_of(*model, two);
  const auto draft = runner_of(*model, target->options());
  ASSERT_EQ(draft->options().threads, target->options().threads);
  ASSERT_EQ(draft->options().n_threads, 2);
  Task task;
  task.prompt = some_tokens(20, 1);
  task.sampling = greedy();
  task.sampling.ignore_eos = true;
  task.generation.max_tokens = 60;
  const Outcome without = decode(*target, *tokenizer, task, nullptr);
  DraftModel itself(*draft, {0.01, tokenizer->size(), {}});
  const Outcome with = decode(*target, *tokenizer, task, &itself);
  expect_equal(with, without);
  EXPECT_GT(with.counts.n_accepted, 30u);
}

// The two tokens after a fixed history, drawn 3000 times with the seeds 1…3000, each time from a verify step whose
// draft is the most probable pair. Expected: the product of the chain's probabilities, from logits without drafts.
// Pearson's chi-square over 36 pairs has to stay below 66.6, which chance exceeds once in a thousand times (35 degrees
// of freedom); being deterministic, the test cannot flicker.
TEST(SpeculativeDistribution, IsTheModelsOwn) {
  constexpr std::size_t kKept = 6, kTrials = 3000;
  const auto tokenizer = fake::byte_tokenizer();
  const auto model = make_model("llama", 7, static_cast<int64_t>(tokenizer->size()));
  const auto runner = make_runner(*model);
  SamplingParams params;
  params.top_k = kKept;
  params.top_p = 1;
  params.min_p = 0;
  params.temperature = 0.7f;

  // Probabilities of the kept tokens, most probable first.
  using Distribution = std::vector<std::pair<TokenId, double>>;
  const auto distribution = [&](std::span<const float> logits) {
    std::vector<TokenId> ids(tokenizer->size());
    std::iota(ids.begin(), ids.end(), 0);
    std::partial_sort(ids.begin(), ids.begin() + kKept, ids.end(), [&](TokenId a, TokenId b) {
      return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
    });
    Distribution out;
    double sum = 0;
    for (std::size_t i = 0; i < kKept; ++i) {
      out.emplace_back(ids[i], std::exp(static_cast<double>(logits[static_cast<std::size_t>(ids[i])]) / 0.7));
      sum += out.back().second;
    }
    for (auto& [id, p] : out) p /= sum;
    return out;
  };
  const Tokens prompt = some_tokens(20, 3);
  const TokenId known = 42;
  const auto after = [&](const Tokens& tokens) {
    EXPECT_TRUE(runner->memory().truncate(0, prompt.size()).ok());
    std::vector<BatchToken> batch;
    for (const TokenId id : tokens) batch.push_back({id, 0, true});
    EXPECT_TRUE(runner->step(batch).ok());
    return distribution(runner->output(tokens.size() - 1));
  };
  ASSERT_TRUE(prefill(*runner, 0, prompt, {}, {}).ok());
  std::map<std::pair<TokenId, TokenId>, double> expected;
  Tokens likely;
  for (const auto& [a, p_a] : after({known})) {
    const Distribution second = after({known, a});
    if (likely.empty()) likely = {a, second.front().first};
    for (const auto& [b, p_b] : second) expected[{a, b}] = p_a * p_b;
  }

  std::map<std::pair<TokenId, TokenId>, double> seen;
  std::size_t n_accepted = 0, n_rejected = 0;
  for (std::size_t trial = 1; trial <= kTrials; ++trial) {
    ASSERT_TRUE(runner->memory().truncate(0, prompt.size()).ok());
    params.seed = static_cast<int64_t>(trial);
    auto sampler = Sampler::create(params, *tokenizer, tokenizer->size(), 256);
    ASSERT_TRUE(sampler.ok());
    Tokens history = prompt;
    history.push_back(known);
    // The draft is one longer than what is wanted, so that two tokens of it can be accepted.
    ScriptedSource source([&](std::span<const TokenId> so_far, std::size_t) {
      return so_far.size() == prompt.size() + 1 ? Tokens{likely[0], likely[1], likely[1]} : Tokens();
    });
    SpeculativeDecoder decoder(*runner, 0, source, {}, history);
    Tokens drawn;
    while (drawn.size() < 2) {
      const auto stepped = decoder.step(4,
                                        [&](std::span<const float> row) -> Result<SpeculativeDecoder::Drawn> {
                                          TRY_ASSIGN(const TokenId id, (*sampler)->sample(row, nullptr));
                                          (*sampler)->accept(id);
                                          drawn.push_back(id);
                                          return SpeculativeDecoder::Drawn{id, drawn.size() == 2};
                                        },
                                        {}, {});
      ASSERT_TRUE(stepped.ok()) << stepped.error().message;
    }
    seen[{drawn[0], drawn[1]}] += 1;
    n_accepted += decoder.counts().n_accepted;
    n_rejected += decoder.counts().n_accepted == 0 ? 1 : 0;
  }

  ASSERT_EQ(expected.size(), kKept * kKept);
  double chi_square = 0;
  for (const auto& [pair, p] : expected) {
    const double wanted = p * kTrials, got = seen[pair];
    EXPECT_GE(wanted, 5) << "too few for the approximation";
    chi_square += (got - wanted) * (got - wanted) / wanted;
  }
  EXPECT_EQ(seen.size(), expected.size()) << "a pair that the chain excludes was drawn";
  EXPECT_LT(chi_square, 66.6);
  EXPECT_GT(n_accepted, kTrials / 10);
  EXPECT_GT(n_rejected, kTrials / 10);
}

}  // namespace
}  // namespace hocket::test
