// What every registered architecture must do, with synthetic weights: no architecture is listed here by name.
//
// With F32 weights and caches the ways to compute the same thing differ only in the order of F32 sums: see
// rounding_bound(). Where the very same graph runs on the same data the bits must be equal.
#include <gtest/gtest.h>

#include <limits>

#include "lm/language_model.h"
#include "lm/runner.h"
#include "support/numbers.h"
#include "support/tiny_models.h"

namespace hocket::test {
namespace {

std::vector<int32_t> some_tokens(std::size_t n, uint32_t seed) {
  std::vector<int32_t> tokens;
  for (std::size_t i = 0; i < n; ++i) {
    seed = seed * 1664525u + 1013904223u;
    tokens.push_back(static_cast<int32_t>((seed >> 8) % kTinyVocab));
  }
  return tokens;
}

class Conformance : public testing::TestWithParam<std::string> {
 protected:
  static constexpr uint64_t kSeed = 7;

  void SetUp() override {
    metadata_ = tiny_metadata(GetParam());
    ASSERT_TRUE(metadata_.has_value()) << "tests/support/tiny_models.h has no entry for " << GetParam();
    auto model = LanguageModel::synthetic(*metadata_, kSeed, kTinyVocab);
    ASSERT_TRUE(model.ok()) << model.error().message;
    model_ = std::move(*model);
    rounding_ = rounding_bound(GetParam());
  }

  static RunnerOptions options(std::size_t n_seqs = 1) {
    RunnerOptions options;
    options.n_ctx = 256;
    options.n_seqs = n_seqs;
    options.n_batch = 64;
    options.n_threads = 1;
    options.cache_k = options.cache_v = CacheType::kF32;
    options.n_rollback = 5;
    options.n_checkpoints = 2;
    return options;
  }
  static std::unique_ptr<LmRunner> runner_of(const LanguageModel& model, const RunnerOptions& options) {
    auto made = LmRunner::create(model, options);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(*made);
  }
  std::unique_ptr<LmRunner> runner(std::size_t n_seqs = 1, CacheType type = CacheType::kF32, int n_threads = 1) {
    RunnerOptions with = options(n_seqs);
    with.n_threads = n_threads;
    with.cache_k = with.cache_v = type;
    return runner_of(*model_, with);
  }

  // Feeds tokens to a sequence in chunks; the logits of the last one.
  static std::vector<float> feed(LmRunner& runner, SeqId seq, std::span<const int32_t> tokens, std::size_t chunk) {
    std::vector<float> row;
    for (std::size_t at = 0; at < tokens.size(); at += chunk) {
      std::vector<BatchToken> batch;
      for (std::size_t i = at; i < std::min(at + chunk, tokens.size()); ++i)
        batch.push_back({tokens[i], seq, i + 1 == tokens.size()});
      const auto stepped = runner.step(batch);
      EXPECT_TRUE(stepped.ok()) << stepped.error().message;
      if (runner.n_outputs() == 1) row.assign(runner.output(0).begin(), runner.output(0).end());
    }
    return row;
  }

  std::optional<Metadata> metadata_;
  std::unique_ptr<LanguageModel> model_;
  double rounding_ = 0;
};

TEST_P(Conformance, PrefillEqualsTokenByToken) {
  const auto tokens = some_tokens(50, 1);
  auto whole = runner(), chunks = runner(), single = runner();
  const auto expected = feed(*whole, 0, tokens, 64);
  EXPECT_GT(nmse(feed(*runner(), 0, some_tokens(50, 2), 64), expected), 1e-3) << "the model ignores its input";
  EXPECT_LE(nmse(feed(*chunks, 0, tokens, 7), expected), rounding_);
  EXPECT_LE(nmse(feed(*single, 0, tokens, 1), expected), rounding_);
}

TEST_P(Conformance, EveryRowEqualsTheLastRowOfItsPrefix) {
  const auto tokens = some_tokens(20, 3);
  auto all = runner();
  std::vector<BatchToken> batch;
  for (const int32_t id : tokens) batch.push_back({id, 0, true});
  ASSERT_TRUE(all->step(batch).ok());
  for (const std::size_t n : {1, 8, 9, 10, 20}) {
    auto one = runner();
    const auto expected = feed(*one, 0, std::span(tokens).first(n), 64);
    EXPECT_LE(nmse(all->output(n - 1), expected), rounding_) << "row " << n - 1;
  }
}

TEST_P(Conformance, LogitsThatNobodyReadsAreLeftOut) {
  const std::vector<BatchToken> batch{{5, 0, true}, {9, 0, false}, {3, 0, true}};
  auto whole = runner(), part = runner();
  ASSERT_TRUE(whole->step(batch).ok());
  part->skip_logits_below(kTinyVocab - 20);
  ASSERT_TRUE(part->step(batch).ok());
  ASSERT_EQ(part->n_outputs(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(part->output(i).size(), whole->output(i).size());
    EXPECT_EQ(part->output(i)[0], -std::numeric_limits<float>::infinity());
    EXPECT_LE(nmse(part->output(i).last(20), whole->output(i).last(20)), rounding_) << "row " << i;
  }
  // The memory is that of a whole step, and all logits come back.
  part->skip_logits_below(0);
  ASSERT_TRUE(whole->step(batch).ok());
  ASSERT_TRUE(part->step(batch).ok());
  EXPECT_EQ(std::vector(part->output(1).begin(), part->output(1).end()),
            std::vector(whole->output(1).begin(), whole->output(1).end()));
}

TEST_P(Conformance, BatchOfTwoEqualsEachAlone) {
  const auto a = some_tokens(30, 4), b = some_tokens(23, 5);
  auto alone = runner();
  const auto expected_a = feed(*alone, 0, a, 64);
  alone->memory().clear(0);
  const auto expected_b = feed(*alone, 0, b, 64);

  auto both = runner(2);
  std::vector<BatchToken> batch;  // interleaved
  for (std::size_t i = 0; i < a.size(); ++i) {
    batch.push_back({a[i], 0, i + 1 == a.size()});
    if (i < b.size()) batch.push_back({b[i], 1, i + 1 == b.size()});
  }
  ASSERT_TRUE(both->step(batch).ok());
  ASSERT_EQ(both->n_outputs(), 2u);
  EXPECT_LE(nmse(both->output(0), expected_b), rounding_);  // b is shorter, so its row comes first
  EXPECT_LE(nmse(both->output(1), expected_a), rounding_);
}

TEST_P(Conformance, SnapshotContinuesBitEqual) {
  const auto tokens = some_tokens(40, 6);
  const auto head = std::span(tokens).first(30), tail = std::span(tokens).last(10);
  auto first = runner();
  feed(*first, 0, head, 16);
  const auto snapshot = first->memory().snapshot(0);
  ASSERT_TRUE(snapshot.ok()) << snapshot.error().message;
  const auto expected = feed(*first, 0, tail, 4);

  auto second = runner();
  feed(*second, 0, some_tokens(11, 9), 16);  // something else is in the way
  ASSERT_TRUE(second->memory().restore(0, *snapshot).ok());
  EXPECT_EQ(second->memory().length(0), 30u);
  const auto got = feed(*second, 0, tail, 4);
  // Cells may lie elsewhere, which changes the order of sums in attention.
  EXPECT_LE(nmse(got, expected), rounding_);

  auto third = runner();
  ASSERT_TRUE(third->memory().restore(0, *snapshot).ok());
  auto fourth = runner();
  ASSERT_TRUE(fourth->memory().restore(0, *snapshot).ok());
  EXPECT_EQ(feed(*third, 0, tail, 4), feed(*fourth, 0, tail, 4));
}

TEST_P(Conformance, DamagedSnapshotsChangeNothing) {
  const auto tokens = some_tokens(12, 8);
  auto source = runner(), target = runner();
  feed(*source, 0, tokens, 64);
  feed(*target, 0, std::span(tokens).first(5), 64);
  const auto good = source->memory().snapshot(0);
  ASSERT_TRUE(good.ok());
  for (std::size_t n = 0; n < good->size(); n += 1 + n / 8)
    EXPECT_FALSE(target->memory().restore(0, std::span(*good).first(n)).ok()) << n << " bytes";
  for (std::size_t i = 0; i < 64; ++i) {
    auto bad = *good;
    bad[i] ^= std::byte{0x40};
    EXPECT_FALSE(target->memory().restore(0, bad).ok()) << "byte " << i;
  }
  EXPECT_EQ(target->memory().length(0), 5u);
  auto f16 = runner(1, CacheType::kF16);
  EXPECT_FALSE(f16->memory().restore(0, *good).ok());
}

TEST_P(Conformance, ForkGoesItsOwnWay) {
  const auto head = some_tokens(20, 10), left = some_tokens(9, 11), right = some_tokens(9, 12);
  auto forked = runner(2);
  feed(*forked, 0, head, 64);
  ASSERT_TRUE(forked->memory().fork(0, 1).ok());
  const auto got_left = feed(*forked, 0, left, 64);
  const auto got_right = feed(*forked, 1, right, 64);
  auto alone = runner();
  feed(*alone, 0, head, 64);
  EXPECT_LE(nmse(got_left, feed(*alone, 0, left, 64)), rounding_);
  alone->memory().clear(0);
  feed(*alone, 0, head, 64);
  EXPECT_LE(nmse(got_right, feed(*alone, 0, right, 64)), rounding_);
}

TEST_P(Conformance, TruncationForgets) {
  const auto tokens = some_tokens(24, 13), other = some_tokens(6, 14);
  for (const std::size_t n : {20, 21, 23, 24}) {
    auto cut = runner(), cold = runner();
    feed(*cut, 0, std::span(tokens).first(20), 64);
    feed(*cut, 0, std::span(tokens).last(4), 4);  // a step that can be taken back token by token
    ASSERT_TRUE(cut->memory().can_truncate(0, n)) << n;
    ASSERT_TRUE(cut->memory().truncate(0, n).ok()) << n;
    EXPECT_EQ(cut->memory().length(0), n);
    feed(*cold, 0, std::span(tokens).first(n), 64);
    EXPECT_LE(nmse(feed(*cut, 0, other, 64), feed(*cold, 0, other, 64)), rounding_) << n;
  }
}

TEST_P(Conformance, TruncationIsPossibleOrRefused) {
  const auto tokens = some_tokens(40, 20), other = some_tokens(6, 21);
  auto cut = runner();
  feed(*cut, 0, tokens, 64);
  EXPECT_FALSE(cut->memory().truncate(0, 999).ok());
  for (const std::size_t n : {39, 12, 1}) {
    const bool possible = cut->memory().can_truncate(0, n);
    if (cut->memory().traits().cuts_anywhere && n == 39) {
      EXPECT_TRUE(possible);
    }
    EXPECT_EQ(cut->memory().truncate(0, n).ok(), possible) << n;
    if (!possible) {
      EXPECT_EQ(cut->memory().length(0), 40u);
    }
    if (possible) break;
  }
  cut->memory().clear(0);
  auto cold = runner();
  EXPECT_EQ(feed(*cut, 0, other, 64), feed(*cold, 0, other, 64)) << "an emptied sequence is a new one";
}

TEST_P(Conformance, CheckpointsCanBeReturnedTo) {
  const auto tokens = some_tokens(36, 22), other = some_tokens(6, 23);
  auto marked = runner(2);
  feed(*marked, 0, std::span(tokens).first(16), 8);
  marked->memory().checkpoint(0);
  feed(*marked, 0, std::span(tokens).subspan(16, 5), 1);
  ASSERT_TRUE(marked->memory().fork(0, 1).ok());
  for (const SeqId seq : {0, 1}) {
    if (!marked->memory().can_truncate(seq, 16)) {
      EXPECT_TRUE(marked->memory().traits().cuts_anywhere) << "only a window can have lost it";
      continue;
    }
    ASSERT_TRUE(marked->memory().truncate(seq, 16).ok());
    auto cold = runner();
    feed(*cold, 0, std::span(tokens).first(16), 8);
    EXPECT_LE(nmse(feed(*marked, seq, other, 64), feed(*cold, 0, other, 64)), rounding_) << seq;
    ASSERT_TRUE(marked->memory().truncate(seq, 16).ok()) << "a checkpoint can be used again";
  }
}

// Every model that may be cut into parts gives the same logits in parts, bit by bit: the same operations on the same
// data.
TEST_P(Conformance, StagesAtEveryCutEqualTheWhole) {
  const auto tokens = some_tokens(33, 24);
  auto whole = runner();
  const auto n_layer = model_->summary().n_layer;
  std::vector<std::vector<float>> expected;
  for (const std::size_t n : {26u, 1u, 6u}) {
    const auto at = whole->memory().length(0);
    expected.push_back(feed(*whole, 0, std::span(tokens).subspan(at, n), 64));
  }
  std::size_t n_cuts = 0;
  for (std::size_t cut = 1; cut < n_layer; ++cut) {
    auto front = LanguageModel::synthetic(*metadata_, kSeed, kTinyVocab, {0, cut});
    auto back = LanguageModel::synthetic(*metadata_, kSeed, kTinyVocab, {cut, 0});
    ASSERT_EQ(front.ok(), back.ok());
    if (!front.ok()) {
      EXPECT_EQ(front.error().code, ErrorCode::kUnsupported) << front.error().message;
      EXPECT_EQ(front.error().param, "layers");
      continue;
    }
    ++n_cuts;
    auto first = runner_of(**front, options()), second = runner_of(**back, options());
    std::size_t at = 0, step = 0;
    for (const std::size_t n : {26u, 1u, 6u}) {
      std::vector<BatchToken> batch;
      for (std::size_t i = 0; i < n; ++i) batch.push_back({tokens[at + i], 0, i + 1 == n});
      ASSERT_TRUE(first->step(batch, StepOutput::kActivations, {}).ok());
      std::vector<float> activations;
      for (std::size_t i = 0; i < n; ++i)
        activations.insert(activations.end(), first->output(i).begin(), first->output(i).end());
      const auto stepped = second->step_from(activations, batch, StepOutput::kLogits, {});
      ASSERT_TRUE(stepped.ok()) << stepped.error().message;
      EXPECT_EQ(std::vector<float>(second->output(0).begin(), second->output(0).end()), expected[step])
          << "cut before layer " << cut << ", step " << step;
      at += n;
      ++step;
    }
    EXPECT_FALSE(second->step(std::vector<BatchToken>{{1, 0, true}}).ok()) << "a later part needs activations";
  }
  const bool known_whole = GetParam() == "gemma4";  // its layers share more than the residual stream
  EXPECT_EQ(n_cuts == 0, known_whole);
}

TEST_P(Conformance, HiddenStatesComeWithLogits) {
  const auto tokens = some_tokens(12, 25);
  auto both = runner(), logits = runner(), hidden = runner();
  std::vector<BatchToken> batch, all;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    batch.push_back({tokens[i], 0, i + 1 == tokens.size()});
    all.push_back({tokens[i], 0, true});
  }
  ASSERT_TRUE(both->step(batch, StepOutput::kLogitsAndHidden, {}).ok());
  ASSERT_TRUE(logits->step(batch).ok());
  ASSERT_TRUE(hidden->step(all, StepOutput::kHidden, {}).ok());
  EXPECT_LE(nmse(both->output(0), std::vector<float>(logits->output(0).begin(), logits->output(0).end())), rounding_);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    EXPECT_LE(nmse(both->hidden(i), std::vector<float>(hidden->output(i).begin(), hidden->output(i).end())), rounding_);
}

TEST_P(Conformance, LongSequencesPassWindowsAndPadding) {
  const auto tokens = some_tokens(250, 15);
  auto chunks = runner(), odd = runner();
  EXPECT_LE(nmse(feed(*odd, 0, tokens, 37), feed(*chunks, 0, tokens, 64)), rounding_);
  EXPECT_EQ(odd->memory().length(0), 250u);
}

TEST_P(Conformance, FullContextIsAnErrorThatChangesNothing) {
  auto full = runner();
  feed(*full, 0, some_tokens(256, 16), 64);
  const BatchToken more{1, 0, true};
  const auto refused = full->step(std::span(&more, 1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kBusy);
  EXPECT_EQ(full->memory().length(0), 256u);
}

TEST_P(Conformance, CancelledStepChangesNothing) {
  const auto tokens = some_tokens(20, 17);
  auto stopped = runner(), plain = runner();
  feed(*stopped, 0, tokens, 64);
  CancelToken cancel;
  cancel.cancel();
  const BatchToken next{3, 0, true};
  const auto refused = stopped->step(std::span(&next, 1), StepOutput::kLogits, cancel);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(stopped->memory().length(0), 20u);
  feed(*plain, 0, tokens, 64);
  const std::vector<int32_t> rest{3, 4};
  EXPECT_EQ(feed(*stopped, 0, rest, 1), feed(*plain, 0, rest, 1));
}

TEST_P(Conformance, EveryCacheTypeWorks) {
  const auto tokens = some_tokens(40, 18);
  const auto expected = feed(*runner(), 0, tokens, 16);
  // 11 bits of mantissa, 8 bits, and 8-bit blocks.
  EXPECT_LE(nmse(feed(*runner(1, CacheType::kF16), 0, tokens, 16), expected), 1e-5);
  EXPECT_LE(nmse(feed(*runner(1, CacheType::kBF16), 0, tokens, 16), expected), 1e-3);
}

TEST_P(Conformance, ThreadsDoNotChangeTheResult) {
  const auto tokens = some_tokens(40, 19);
  const auto expected = feed(*runner(), 0, tokens, 16);
  EXPECT_EQ(feed(*runner(1, CacheType::kF32, 2), 0, tokens, 16), expected);
  EXPECT_EQ(feed(*runner(1, CacheType::kF32, 3), 0, tokens, 16), expected);
}

TEST_P(Conformance, PlanIsWhatIsTaken) {
  RunnerOptions options;
  options.n_ctx = 256;
  options.n_batch = 64;
  const MemoryPlan plan = model_->plan(options);
  auto made = LmRunner::create(*model_, options);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(plan.cache_bytes, (*made)->memory().traits().device_bytes);
  EXPECT_GT(plan.compute_bytes, 0u);
  EXPECT_GT(plan.weight_bytes, 0u);
}

std::vector<std::string> names() {
  return supported_architectures();
}

INSTANTIATE_TEST_SUITE_P(Architectures, Conformance, testing::ValuesIn(names()),
                         [](const auto& test) { return test_name(test.param); });

}  // namespace
}  // namespace hocket::test
