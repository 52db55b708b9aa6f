// NextN blocks: drafts, verified steps and what is taken back, against llama.cpp's draft and main logits on three tiny
// models, made so that some drafts are accepted.
//
// F32 weights and caches, exact attention: NMSE ≤ 1e-10; drafts and accepted tokens equal.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "lm/language_model.h"
#include "lm/runner.h"
#include "support/exact_runner.h"
#include "support/numbers.h"
#include "support/temp_folder.h"
#include "support/tiny_models.h"
#include "weights/gguf_writer.h"

namespace hocket::test {
namespace {

const std::string kFolder = HOCKET_TEST_DATA "/lm/mtp/";

class NextnGolden : public testing::TestWithParam<const char*> {};

TEST_P(NextnGolden, DraftsAndVerifiedTokensAreEqual) {
  const nlohmann::json index = nlohmann::json::parse(std::ifstream(kFolder + "index.json"));
  nlohmann::json entry;
  for (const auto& model : index["models"])
    if (model["architecture"] == GetParam()) entry = model;
  ASSERT_FALSE(entry.is_null());
  auto file = GgufFile::open(kFolder + entry["model"].get<std::string>());
  ASSERT_TRUE(file.ok()) << file.error().message;
  auto model = LanguageModel::load(std::shared_ptr<const GgufFile>(std::move(*file)), {});
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_TRUE((*model)->summary().nextn);
  const auto draft_rows = read_floats(kFolder + entry["draft_logits"].get<std::string>());
  const auto main_rows = read_floats(kFolder + entry["main_logits"].get<std::string>());
  const auto n_vocab = (*model)->n_vocab(), n_embd = (*model)->summary().n_embd;
  const std::size_t n_draft = entry["n_draft_max"];
  const std::vector<int32_t> prompt = entry["prompt_ids"];

  auto trunk = std::move(*LmRunner::create(**model, exact_options(n_draft + 1)));
  auto nextn = std::move(*LmRunner::create_nextn(**model, exact_options(1)));

  // Everything before the last prompt token: the block sees each token with the hidden state of the one before it.
  std::vector<BatchToken> batch;
  for (std::size_t i = 0; i + 1 < prompt.size(); ++i) batch.push_back({prompt[i], 0, false});
  ASSERT_TRUE(trunk->step(batch, StepOutput::kLogitsAndHidden, {}).ok());
  std::vector<float> before(n_embd, 0.0f);
  for (std::size_t i = 0; i + 1 < batch.size(); ++i)
    before.insert(before.end(), trunk->hidden(i).begin(), trunk->hidden(i).end());
  std::vector<float> pending(trunk->hidden(batch.size() - 1).begin(), trunk->hidden(batch.size() - 1).end());
  ASSERT_TRUE(nextn->step_from(before, batch, StepOutput::kLogits, {}).ok());

  std::size_t draft_row = 0, main_row = 0;
  const auto compare = [&](std::span<const float> row, const std::vector<float>& rows, std::size_t i) {
    ASSERT_LE((i + 1) * n_vocab, rows.size());
    EXPECT_LE(nmse(row, std::span(rows).subspan(i * n_vocab, n_vocab)), 1e-10) << "row " << i;
  };
  for (const auto& step : entry["steps"]) {
    const std::size_t position = step["pos"];
    SCOPED_TRACE(testing::Message() << "at position " << position);
    ASSERT_EQ(trunk->memory().length(0), position);
    ASSERT_EQ(nextn->memory().length(0), position);

    std::vector<BatchToken> verify{{step["token"], 0, true}};
    std::vector<float> from = pending;
    for (const int32_t expected : step["drafts"]) {
      const std::vector<BatchToken> one{{verify.back().id, 0, true}};
      ASSERT_TRUE(nextn->step_from(from, one, StepOutput::kLogitsAndHidden, {}).ok());
      compare(nextn->output(0), draft_rows, draft_row++);
      EXPECT_EQ(static_cast<int32_t>(argmax(nextn->output(0))), expected);
      verify.push_back({expected, 0, true});
      from.assign(nextn->hidden(0).begin(), nextn->hidden(0).end());
    }

    ASSERT_TRUE(trunk->step(verify, StepOutput::kLogitsAndHidden, {}).ok());
    std::vector<int32_t> chosen;
    for (std::size_t i = 0; i < verify.size(); ++i) {
      compare(trunk->output(i), main_rows, main_row++);
      chosen.push_back(static_cast<int32_t>(argmax(trunk->output(i))));
      if (i + 1 == verify.size() || chosen.back() != verify[i + 1].id) break;
    }
    EXPECT_EQ(chosen, step["main"].get<std::vector<int32_t>>());
    const std::size_t n_accepted = chosen.size() - 1;
    EXPECT_EQ(n_accepted, step["accepted"].get<std::size_t>());

    // Back to what was accepted; the block sees those tokens again, with the trunk's own states.
    ASSERT_TRUE(trunk->memory().truncate(0, position + chosen.size()).ok());
    ASSERT_TRUE(nextn->memory().truncate(0, position).ok());
    verify.resize(chosen.size());
    before = pending;
    for (std::size_t i = 0; i < n_accepted; ++i)
      before.insert(before.end(), trunk->hidden(i).begin(), trunk->hidden(i).end());
    pending.assign(trunk->hidden(n_accepted).begin(), trunk->hidden(n_accepted).end());
    ASSERT_TRUE(nextn->step_from(before, verify, StepOutput::kLogits, {}).ok());
  }
  EXPECT_EQ(draft_row * n_vocab, draft_rows.size());
  EXPECT_EQ(main_row * n_vocab, main_rows.size());
}

// The tensors of a file that are wanted, as another file.
std::shared_ptr<const GgufFile> part_of(const GgufFile& file, const std::string& path,
                                        const std::function<bool(const std::string&)>& wanted) {
  GgufWriter writer(file.metadata());
  for (const TensorInfo& t : file.tensors()) {
    if (!wanted(t.name)) continue;
    std::vector<std::byte> data(t.n_bytes);
    EXPECT_TRUE(file.read(t, 0, data).ok());
    EXPECT_TRUE(writer.add_bytes(t.name, t.type, {t.ne.begin(), t.ne.begin() + t.n_dims}, std::move(data)).ok());
  }
  EXPECT_TRUE(writer.write(path).ok());
  return std::shared_ptr<const GgufFile>(std::move(*GgufFile::open(path)));
}

// "mtp-" files hold the block, the table, the head and the norm before it; the trunk is in a file without the block.
TEST_P(NextnGolden, ABlockInAFileOfItsOwnDraftsTheSame) {
  const TempFolder folder;
  const std::shared_ptr<const GgufFile> file(
      std::move(*GgufFile::open(kFolder + std::string(GetParam()) + "-mtp.gguf")));
  const auto whole = *LanguageModel::load(file, {});
  const std::string block = "blk." + std::to_string(whole->summary().n_layer) + ".";
  const auto of_block = [&](const std::string& name) { return name.starts_with(block); };
  const auto alone_file = part_of(*file, folder.file("mtp.gguf"),
                                  [&](const std::string& name) { return of_block(name) || !name.starts_with("blk."); });
  const auto trunk_file =
      part_of(*file, folder.file("trunk.gguf"), [&](const std::string& name) { return !of_block(name); });

  LoadOptions options;
  options.nextn = LoadOptions::Nextn::kAlone;
  const auto alone = LanguageModel::load(alone_file, options);
  ASSERT_TRUE(alone.ok()) << alone.error().message;
  const auto trunk = LanguageModel::load(trunk_file, {});
  ASSERT_TRUE(trunk.ok()) << trunk.error().message;
  EXPECT_FALSE((*trunk)->summary().nextn);
  EXPECT_FALSE(LanguageModel::load(trunk_file, options).ok()) << "there is no block in it";

  const auto draft = [](const LanguageModel& model) {
    auto runner = std::move(*LmRunner::create_nextn(model, exact_options(1)));
    const std::size_t n_embd = model.summary().n_embd;
    std::vector<float> hidden(3 * n_embd);
    for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] = std::sin(static_cast<float>(i));
    const std::vector<BatchToken> batch{{5, 0, false}, {6, 0, false}, {7, 0, true}};
    EXPECT_TRUE(runner->step_from(hidden, batch, StepOutput::kLogits, {}).ok());
    return std::vector<float>(runner->output(0).begin(), runner->output(0).end());
  };
  EXPECT_EQ(draft(**alone), draft(*whole));
}

INSTANTIATE_TEST_SUITE_P(Models, NextnGolden, testing::Values("qwen35", "glm4moe", "deepseek2"),
                         [](const auto& test) { return std::string(test.param); });

// Families with NextN blocks, with synthetic weights.
class NextnConformance : public testing::TestWithParam<std::string> {};

TEST_P(NextnConformance, PrefillEqualsTokenByToken) {
  const auto metadata = tiny_metadata_with_nextn(GetParam());
  ASSERT_TRUE(metadata.has_value());
  const auto model = LanguageModel::synthetic(*metadata, 7, kTinyVocab);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ((*model)->summary().n_layer,
            static_cast<std::size_t>(*metadata->integer(GetParam() + ".block_count", 1, 100) - 1));

  const auto n_embd = (*model)->summary().n_embd;
  std::vector<BatchToken> batch;
  std::vector<float> hidden;
  for (std::size_t i = 0; i < 20; ++i) {
    batch.push_back({static_cast<int32_t>(i * 7 % kTinyVocab), 0, i == 19});
    for (std::size_t j = 0; j < n_embd; ++j) hidden.push_back(std::sin(static_cast<float>(i * n_embd + j)));
  }
  const auto feed = [&](std::size_t chunk) {
    auto runner = std::move(*LmRunner::create_nextn(**model, exact_options(1)));
    EXPECT_FALSE(runner->step(batch).ok()) << "a block starts from hidden states";
    for (std::size_t at = 0; at < batch.size(); at += chunk) {
      const std::size_t n = std::min(chunk, batch.size() - at);
      EXPECT_TRUE(runner
                      ->step_from(std::span(hidden).subspan(at * n_embd, n * n_embd), std::span(batch).subspan(at, n),
                                  StepOutput::kLogits, {})
                      .ok());
    }
    return std::vector<float>(runner->output(0).begin(), runner->output(0).end());
  };
  const auto expected = feed(20);
  EXPECT_LE(nmse(feed(1), expected), rounding_bound(GetParam()));
  EXPECT_LE(nmse(feed(7), expected), rounding_bound(GetParam()));
  hidden[19 * n_embd] += 1.0f;
  EXPECT_GT(nmse(feed(20), expected), 1e-8) << "the hidden state is ignored";
}

INSTANTIATE_TEST_SUITE_P(Architectures, NextnConformance,
                         testing::Values("bailingmoe2", "bailingmoe3", "deepseek2", "glm-dsa", "glm4moe", "qwen35",
                                         "qwen35moe"),
                         [](const auto& test) { return test_name(test.param); });

}  // namespace
}  // namespace hocket::test
