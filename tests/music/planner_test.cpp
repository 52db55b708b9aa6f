#include <gtest/gtest.h>

#include "music/goldens.h"
#include "music/planner/answer.h"
#include "music/planner/planner_prompts.h"
#include "music/planner/token_draw.h"

namespace hocket {
namespace {

using test::Golden;
using test::value_or_fail;

TEST(TokenDraw, ChoosesTheGoldenIdsWithEverySetting) {
  const Golden golden("lm-sampler");
  const auto logits = golden.floats("logits");
  const auto& settings = golden.params()["settings"];
  for (std::size_t s = 0; s < settings.size(); ++s) {
    const DrawOptions options{settings[s]["temperature"], settings[s]["top_p"], settings[s]["top_k"]};
    TokenDraw draw(settings[s]["seed"].get<uint32_t>());
    const auto expected = golden.ints("tokens" + std::to_string(s));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      std::vector<float> row(logits.begin() + static_cast<std::ptrdiff_t>(300 * i),
                             logits.begin() + static_cast<std::ptrdiff_t>(300 * (i + 1)));
      EXPECT_EQ(draw.draw(row, options), static_cast<std::size_t>(expected[i])) << "setting " << s << " draw " << i;
    }
  }
}

TEST(TokenDraw, TiesAtTheTopKThresholdStay) {
  TokenDraw draw(1);
  std::vector<int> counts(4);
  for (int i = 0; i < 300; ++i) {
    std::vector<float> row{1, 2, 2, 2};
    ++counts[draw.draw(row, {1.0f, 0.0f, 2})];
  }
  EXPECT_EQ(counts[0], 0);
  for (int i = 1; i < 4; ++i) EXPECT_GT(counts[static_cast<std::size_t>(i)], 50);
}

TEST(PlannerPrompts, WriteTheGoldenYaml) {
  const auto goldens = test::music_json("lm-text.json");
  for (const auto& golden : goldens["yaml"]) {
    const MusicRequest request = value_or_fail(parse_music_request(golden["fields"].dump()));
    EXPECT_EQ(metadata_yaml(request), golden["text"].get<std::string>());
  }
}

TEST(PlannerAnswer, ReadsEveryGolden) {
  const auto goldens = test::music_json("lm-text.json");
  for (const auto& golden : goldens["parse"]) {
    const PlannerAnswer answer = parse_answer(golden["text"].get<std::string>());
    const auto& fields = golden["fields"];
    const std::string text = golden["text"];
    EXPECT_EQ(answer.bpm, fields.value("bpm", 0)) << text;
    EXPECT_EQ(answer.duration, fields.value("duration", 0.0f)) << text;
    EXPECT_EQ(answer.keyscale, fields.value("keyscale", "")) << text;
    EXPECT_EQ(answer.timesignature, fields.value("timesignature", "")) << text;
    EXPECT_EQ(answer.language, fields.value("vocal_language", "")) << text;
    EXPECT_EQ(answer.caption, fields.value("caption", "")) << text;
    EXPECT_EQ(answer.lyrics, fields.value("lyrics", "")) << text;
  }
}

TEST(PlannerAnswer, TakesAnyTextAndMergesWithinLimits) {
  for (const char* text :
       {"", "<think>", "</think>", "bpm:", "bpm:99999999999999999999\n", "duration:nan\n", "duration:1e39\n</think>",
        "caption:", "</think></think># Lyric\n", "<think></think><think>"}) {
    const MusicRequest merged = merge_answer({}, parse_answer(text), {true, true}, {});
    EXPECT_GE(merged.bpm, 0) << text;
    EXPECT_GT(merged.duration, 0) << text;
    EXPECT_LE(merged.duration, 600) << text;
  }
  MusicRequest base;
  base.bpm = 70;
  base.vocal_language = "unknown";
  base.caption = "mine";
  PlannerAnswer answer;
  answer.bpm = 99;
  answer.duration = 1000;
  answer.language = "de";
  answer.caption = "theirs";
  answer.lyrics = "la";
  const MusicRequest locked = merge_answer(base, answer, {false, false}, base);
  EXPECT_EQ(locked.bpm, 70);
  EXPECT_EQ(locked.duration, 600);
  EXPECT_EQ(locked.vocal_language, "de");
  EXPECT_EQ(locked.caption, "mine");
  EXPECT_EQ(locked.lyrics, "");
  EXPECT_EQ(merge_answer(base, answer, {true, true}, base).caption, "theirs");
}

}  // namespace
}  // namespace hocket
